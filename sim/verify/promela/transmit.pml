/* What SDMA and SEND work on: a host that posts descriptors of two endpoints and takes one of these
 * back, the read channel of the DMA engine with stalls of any length and with faults, and a MAC that
 * sends what TxPrd covers whether it has arrived or not, between frames of the plain path.
 *
 * Bounds: FRAMES, PARTS of a long frame, FAULTS of the channel, PLAIN frames, CLOSES.
 * With SATURATED the host posts long frames for ever, and nothing fails.
 */

bool long_frame[FRAMES], with_sum[FRAMES], endpoint_of[FRAMES];
byte posted;            /* descriptors that the host has written */
/* The doorbells: the host's write of a mailbox says how many descriptors there are, and sets the
 * endpoint's bit, which CPU B clears before it looks. */
#ifdef DOORBELLS
bool rung[2];
byte answering;         /* 1 + the endpoint whose doorbell CPU B answers, between both steps */
byte looked[2];         /* descriptors that were posted when CPU B looked */
#define LOOKED_AT(frame) (frame < looked[endpoint_of[frame]])
#else
#define LOOKED_AT(frame) true
#endif
byte next;              /* the descriptor that SDMA takes next */
byte fetching;          /* the frame that SDMA has in work */
byte endpoint_closing;  /* 1 + the endpoint that is to be closed */
bool endpoint_closed[2];
byte completed[FRAMES], on_the_wire[FRAMES];
bool given_up[FRAMES];  /* completed with an error */

/* The read channel. */
byte queued;            /* transfers that have not completed */
byte arrived;           /* completions that SDMA has not seen */
byte seen;              /* completions that it has seen, of this frame */
byte transfers;         /* of this frame */
bool channel_failed, as_a_whole, sum_queued, sum_stored[FRAMES];
byte here[FRAMES];      /* parts in NIC memory */
bool late[PARTS + 1];   /* whether the MAC was at the part before the bus had brought it */
bool in_time;           /* what SEND's clock says of the part: never true of a late one */
byte faults = FAULTS;

/* The MAC. */
chan at_the_mac = [FRAMES] of { byte };
byte leaving;           /* the frame on the wire */
byte position;          /* the part of it that leaves, from 1; 0: none */
bool old_bytes;         /* a part left before it was there */
bool stopped, plain_frame;
byte sent;              /* frames that SEND has not seen leave */
byte covered;           /* TxPrd: the frames in front of this one are the MAC's, or are none */
byte plain_left = PLAIN;

/* The watch. */
bool armed, fired;
byte certified;

#define PARTS_OF(frame) (long_frame[frame] -> PARTS : 1)
#define MAC_IDLE (position == 0 && len(at_the_mac) == 0 && !plain_frame)
/* Both wires have the same rate: under endless load a part comes in for each one that leaves. */
#if defined(SATURATED) && defined(BOTH_WIRES)
#define WIRE_KEEPS_UP came_in
#else
#define WIRE_KEEPS_UP true
#endif
/* A part that is not certified leaves, and the deadline has not been served. */
#define OVERDUE (armed && !fired && position > certified)

#define SDMA_MayCut (long_frame[fetching] && !with_sum[fetching] && MAC_IDLE && SEND_state == SEND_Idle)
#define SDMA_SumWanted (with_sum[fetching])
#define SDMA_MoreParts (seen < transfers)
#define SEND_InTime (in_time)
#define SEND_MacHasMore (len(at_the_mac) + sent > 0)

#define SDMA_Failed_pending (channel_failed && arrived == 0)
#define SDMA_Arrived_pending (arrived > 0)
#define SDMA_SumStored_pending (sum_queued)
#define SDMA_Closed_pending (endpoint_closing != 0)
#define SDMA_Posted_pending (next < posted && LOOKED_AT(next) && !endpoint_closed[endpoint_of[next]])
#define SEND_Deadline_pending (armed && !fired)
#define SEND_Sent_pending (sent > 0)

#ifdef DOORBELLS
/* What CPU B has seen of descriptors that are taken makes no states. */
inline forget_looks() {
	looked[0] = (looked[0] > next -> looked[0] : 0);
	looked[1] = (looked[1] > next -> looked[1] : 0)
}
inline ring(endpoint) { rung[endpoint] = true }
inline clear_bell(endpoint) { printf("clear %d\n", endpoint); rung[endpoint] = false }
inline look(endpoint) {
	printf("look %d\n", endpoint);
	looked[endpoint] = (posted > next -> posted : 0)
}
#else
inline forget_looks() { skip }
inline ring(endpoint) { skip }
#endif

inline SDMA_Failed_ack() { channel_failed = false }
inline SDMA_Arrived_ack() {
	arrived--;
	seen++;
	/* The clock is rounded against itself, so it may call a part late that was not. */
	if
	:: !late[seen] -> in_time = true
	:: in_time = false
	fi
}
inline SDMA_SumStored_ack() { sum_queued = false; sum_stored[fetching] = true }
inline SDMA_Closed_ack() { skip }
inline SDMA_Posted_ack() { fetching = next; next++; seen = 0; forget_looks() }
inline SEND_Deadline_ack() { fired = true }
inline SEND_Sent_ack() { sent-- }

inline complete() {
	assert(!endpoint_closed[endpoint_of[fetching]]);
	assert(completed[fetching] == 0);
	/* The host may use the memory for something else. */
	assert(queued == 0);
	completed[fetching]++
}
inline fetch(count, whole) {
	/* The channel has one master, which starts nothing before it has seen the end. */
	assert(queued == 0 && arrived == 0 && !channel_failed);
	as_a_whole = whole;
	transfers = count;
	queued = count
}

inline SDMA_do_Nothing() { skip }
inline SDMA_do_FetchWhole() { fetch(1, true) }
inline SDMA_do_FetchParts() { fetch(PARTS_OF(fetching), false) }
inline SDMA_do_Offer() { raise(SEND_OfferedWhole); complete() }
inline SDMA_do_OfferEarly() { raise(SEND_OfferedEarly) }
inline SDMA_do_Pass() { raise(SEND_PartArrived) }
inline SDMA_do_PassLast() { raise(SEND_LastArrived); complete() }
inline SDMA_do_FetchAgain() { raise(SEND_PartFailed) }
inline SDMA_do_StoreSum() { sum_queued = true }
inline SDMA_do_Fail() { queued = 0; given_up[fetching] = true; complete() }
inline SDMA_do_Close() {
	endpoint_closed[endpoint_closing - 1] = true;
	endpoint_closing = 0
}

inline SEND_do_Nothing() { skip }
inline hand_over() {
	/* TxPrd never moves back. */
	assert(fetching >= covered);
	covered = fetching + 1;
	at_the_mac!fetching
}
inline SEND_do_Queue() {
	assert(here[fetching] == PARTS_OF(fetching));
	hand_over()
}
inline SEND_do_QueueEarly() {
	/* The deadlines are counted from the moment at which an idle MAC gets the frame. */
	assert(MAC_IDLE && sent == 0);
	hand_over();
	armed = true; fired = false; certified = 1
}
inline SEND_do_Certify() { certified++; fired = false }
inline SEND_do_CertifyLast() {
	certified++;
	assert(certified == PARTS_OF(fetching));
	armed = false
}
inline reset_transmitter() {
	/* What was on the wire ends cut; the descriptor stays. */
	position = 0; old_bytes = false; armed = false
}
inline SEND_do_Abort() { reset_transmitter(); stopped = true }
inline SEND_do_Repeat() {
	assert(here[fetching] == PARTS_OF(fetching));
	reset_transmitter()
}
inline SEND_do_Resume() {
	assert(stopped && here[fetching] == PARTS_OF(fetching));
	stopped = false
}
inline SEND_do_Free() { skip }

active proctype host()
{
end:	do
	:: atomic {
		posted < FRAMES ->
#ifdef SATURATED
		long_frame[posted] = true;
#else
		if :: long_frame[posted] = true :: skip fi;
		if :: with_sum[posted] = true :: skip fi;
		if :: endpoint_of[posted] = 1 :: skip fi;
#endif
		printf("post %d %d %d\n", long_frame[posted], with_sum[posted], endpoint_of[posted]);
		ring(endpoint_of[posted]);
		posted++
	   }
#ifdef SATURATED
	/* Slots of completed frames are used again when all have been. */
	:: atomic {
		posted == FRAMES && next == FRAMES && SDMA_state == SDMA_Idle &&
		SEND_state == SEND_Idle ->
		assert(completed[FRAMES - 1] == 1 && on_the_wire[FRAMES - 1] == 1);
		posted = 0; next = 0; covered = 0;
		for (fetching : 0 .. FRAMES - 1) {
			completed[fetching] = 0; on_the_wire[fetching] = 0; here[fetching] = 0
		}
		fetching = 0
	   }
#else
	:: atomic {
		CLOSES && endpoint_closing == 0 && !endpoint_closed[1] ->
		printf("close\n");
		endpoint_closing = 2
	   }
	/* Descriptors of an endpoint that is closed are gone. */
	:: atomic { next < posted && endpoint_closed[endpoint_of[next]] -> printf("skip\n"); next++; forget_looks() }
#endif
	od
}

#ifdef DOORBELLS
/* CPU B's handler of doorbells. The host, and in this model CPU B's other handlers, may come between
 * its two steps. */
#ifdef CLEARED_LAST
#define answer_first(endpoint) look(endpoint)
#define answer_then(endpoint) clear_bell(endpoint)
#else
#define answer_first(endpoint) clear_bell(endpoint)
#define answer_then(endpoint) look(endpoint)
#endif
active proctype doorbells()
{
end:	do
	:: atomic { answering == 0 && rung[0] -> answering = 1; answer_first(0) }
	:: atomic { answering == 0 && rung[1] -> answering = 2; answer_first(1) }
	:: atomic { answering == 1 -> answering = 0; answer_then(0) }
	:: atomic { answering == 2 -> answering = 0; answer_then(1) }
	od
}
#endif

active proctype read_channel()
{
end:	do
	:: atomic { CAN_READ && queued > 0 && !channel_failed && !reading -> reading = true }
	:: atomic {
		reading ->
		printf("arrive\n");
		reading = false;
		queued--;
		if
		:: as_a_whole -> here[fetching] = PARTS_OF(fetching)
		:: else -> here[fetching]++
		fi;
		late[here[fetching]] = (position >= here[fetching] && leaving == fetching);
		arrived++
	   }
	:: atomic {
		reading && faults > 0 ->
		printf("fail\n");
		faults--; reading = false; channel_failed = true
	   }
	od
}

active proctype mac()
{
end:	do
	:: atomic {
		!stopped && !plain_frame && position == 0 && len(at_the_mac) > 0 ->
		printf("begin\n");
		came_in = false;
		at_the_mac?<leaving>;
		position = 1;
		old_bytes = (here[leaving] < 1)
	   }
	:: atomic {
		position > 0 && position < PARTS_OF(leaving) && WIRE_KEEPS_UP ->
		printf("advance\n");
		came_in = false;
		position++;
		old_bytes = (old_bytes || here[leaving] < position)
	   }
	/* The margin: the deadline is served before the CRC has left. */
	:: atomic {
		position > 0 && position == PARTS_OF(leaving) && !OVERDUE && WIRE_KEEPS_UP ->
		printf("end\n");
		came_in = false;
		assert(!old_bytes);
		assert(!with_sum[leaving] || sum_stored[leaving]);
		on_the_wire[leaving]++;
		assert(on_the_wire[leaving] == 1);
		at_the_mac?_;
		position = 0;
		sent++
	   }
	:: atomic { MAC_IDLE && plain_left > 0 -> printf("plain\n"); plain_left--; plain_frame = true }
	:: atomic { plain_frame -> printf("plain-end\n"); plain_frame = false }
	od
}

#ifndef SATURATED
/* When nothing can happen any more, nothing is left undone. */
active proctype transmit_judge()
{
	byte frame;
	timeout ->
	d_step {
		assert(SDMA_state == SDMA_Idle && SEND_state == SEND_Idle);
		assert(endpoint_closing == 0 && next == posted && posted == FRAMES);
#ifdef DOORBELLS
		assert(!rung[0] && !rung[1] && answering == 0);
#endif
		assert(sent == 0 && len(at_the_mac) == 0 && !stopped && !armed);
		frame = 0;
		do
		:: frame < FRAMES ->
			if
			:: endpoint_closed[endpoint_of[frame]] ->
				assert(on_the_wire[frame] == completed[frame] || given_up[frame])
			:: else ->
				assert(completed[frame] == 1);
				assert(on_the_wire[frame] == (given_up[frame] -> 0 : 1))
			fi;
			frame++
		:: else -> break
		od
	}
}
#endif

#define sdma (SDMA_state == SDMA_Sdma || SDMA_state == SDMA_SdmaFirst || SDMA_state == SDMA_SdmaRest)
#define coarse_send (SEND_state == SEND_CoarseGrainedSend)
#define fine_send (SEND_state == SEND_Watched || SEND_state == SEND_FineGrainedSend)
