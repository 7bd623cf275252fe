/* What RECV and RDMA work on: a wire whose frames come in part by part, good, damaged or given up by
 * the MAC for lack of room (then the next one begins at the same place), the write channel of the DMA
 * engine with stalls of any length and with faults, and a host that posts buffers to two endpoints
 * and takes one of these back.
 *
 * Bounds: FRAMES, PARTS of a frame, FAULTS of the channel, GIVE_UPS, CLOSES, BUFFERS.
 * With SATURATED frames come in for ever, CPU A is done with a part before the next one is there, and
 * nothing fails.
 */

byte begun;             /* frames that the wire has begun */
byte coming;            /* the frame that comes in */
bool comes_in;          /* whether there is one */
byte parts_here;        /* parts of it in NIC memory */
bool followed;          /* whether RECV has seen it begin */
bool grown;             /* whether there are parts of it that RECV has not seen */
bool gave_up;           /* the attention bit: it stays set */
bool crc_right[FRAMES], summed[FRAMES], sum_right[FRAMES], to_endpoint[FRAMES];
byte finished[FRAMES];  /* buffers completed with the frame */
byte freed[FRAMES];     /* times that its room was freed; a frame that is given up keeps none */
byte give_ups = GIVE_UPS;

chan ended = [FRAMES] of { byte };      /* the RX ring */
chan whole_frames = [FRAMES] of { byte };
byte ended_frame;       /* the one that RECV looks at */

/* RDMA's frames. */
byte in_work;           /* the oldest one */
byte behind[FRAMES];    /* those behind it, if they are whole */
byte behind_count;
byte shifted;
byte newest;            /* the one that is being taken */
bool has_room;          /* the oldest one's descriptor is there, so its room is to be freed */
bool unwritten;         /* whether there are parts of the oldest one that it has not queued */
bool ahead[FRAMES];     /* its completion is queued behind its data */
bool spoiled[FRAMES];   /* the channel failed with it */
byte writing, wrote;    /* transfers that are queued or under way, and those that are done */
bool write_failed;
byte write_faults = FAULTS;
byte buffers[2];
byte buffers_left = BUFFERS;
byte receive_closing;
bool receive_closed[2];

/* RDMA has the frame that comes in. How many parts any other one has makes no difference. */
#define IS_CUT (followed && RECV_state == RECV_RecvThrough)
#define RECV_MayCut (RDMA_state == RDMA_Idle && len(whole_frames) == 0 && buffers[to_endpoint[coming]] > 0 && \
	!receive_closed[to_endpoint[coming]])
#define RECV_Good (crc_right[ended_frame])
#define HAS_BUFFER(frame) (buffers[to_endpoint[frame]] > 0 && !receive_closed[to_endpoint[frame]])
#define RDMA_BufferPosted HAS_BUFFER(newest)
#define RDMA_EnoughHere (unwritten)
#define ALL_AHEAD (!has_room || (behind_count == 0 && ahead[in_work]) || \
	(behind_count > 0 && ahead[behind[behind_count - 1]]))
#define RDMA_Sumless ((RDMA_state == RDMA_FineGrainedRdmaDone && !summed[in_work]) || \
	(RDMA_state != RDMA_FineGrainedRdmaDone && !summed[newest] && ALL_AHEAD))
#define RDMA_Completed (ahead[in_work])
#define RDMA_SumRight (sum_right[in_work])
#define RDMA_MoreQueued (behind_count > 0)

#define RECV_GaveUp_pending (gave_up)
#define RECV_Ended_pending (len(ended) > 0)
#define RECV_Grown_pending (comes_in && followed && len(ended) == 0 && grown)
#define RECV_Begun_pending (comes_in && !followed && len(ended) == 0 && parts_here > 0)
#define RDMA_Failed_pending (write_failed)
#define RDMA_Written_pending (wrote > 0)
#define RDMA_Waiting_pending (len(whole_frames) > 0)
#define RDMA_Closed_pending (receive_closing != 0)

inline RECV_GaveUp_ack() { gave_up = false }
inline RECV_Ended_ack() { ended?ended_frame }
inline RECV_Grown_ack() { grown = false }
inline RECV_Begun_ack() { followed = true }
inline RDMA_Failed_ack() { write_failed = false }
inline RDMA_Written_ack() { wrote-- }
inline RDMA_Waiting_ack() { whole_frames?newest }
inline RDMA_Closed_ack() { skip }

#if defined(SATURATED) && defined(BOTH_WIRES)
#define LOADED true
#else
#define LOADED false
#endif
#ifdef SATURATED
/* The next frame follows at once if there is room for it. */
#define CPU_KEEPS_UP (!RECV_Ended_pending && !RECV_Grown_pending && !RECV_Begun_pending && \
	!RDMA_Written_pending && !(RDMA_Waiting_pending && RDMA_state == RDMA_Idle))
inline begin_next() {
	if
	:: !comes_in && freed[begun] == 1 ->
		coming = begun;
		begun = (begun + 1) % FRAMES;
		freed[coming] = 0; finished[coming] = 0;
		sum_right[coming] = true;
		comes_in = true; parts_here = 1
	:: else
	fi
}
#else
#define CPU_KEEPS_UP true
inline begin_next() { skip }
#endif
inline free_room(frame) {
	freed[frame]++;
	assert(freed[frame] == 1);
	/* What nobody asks for any more makes no states. */
	crc_right[frame] = false; summed[frame] = false; sum_right[frame] = false;
	to_endpoint[frame] = false; spoiled[frame] = false; ahead[frame] = false;
	finished[frame] = 0;
	begin_next()
}
/* A transfer takes RxCon to the end of its frame. It takes it over no room that is in use, so RxCon
 * never moves back; what is freed behind such room (RECV's Discard, RDMA's Drop) waits for that. */
inline free_in_order(frame) {
#ifndef SATURATED
	for (shifted : 0 .. FRAMES - 1) {
		assert(shifted >= frame || freed[shifted] == 1)
	}
	shifted = 0;
#endif
	free_room(frame)
}
/* RDMA has this frame, which is whole, as its oldest one. */
inline whole_in_work(frame) { in_work = frame; has_room = true; unwritten = false }
/* The oldest frame is done with. */
inline next_in_work() {
	if
	:: behind_count > 0 ->
		whole_in_work(behind[0]);
		behind_count--;
		for (shifted : 0 .. FRAMES - 2) { behind[shifted] = behind[shifted + 1] }
		behind[FRAMES - 1] = 0;
		shifted = 0
	:: else -> in_work = 0; has_room = false; unwritten = false
	fi
}
inline take_buffer(frame) {
	assert(HAS_BUFFER(frame));
	buffers[to_endpoint[frame]]--
}
inline give_buffer_back(frame) {
	assert(!receive_closed[to_endpoint[frame]]);
	buffers[to_endpoint[frame]]++
}
/* A part, when that in front of it is written. */
inline write() {
	assert(writing == 0 && wrote == 0 && !write_failed);
	assert(!receive_closed[to_endpoint[in_work]]);
	writing = 1;
	unwritten = false
}

inline RECV_do_Nothing() { skip }
inline RECV_do_Follow() { grown = true }
inline RECV_do_Open() {
	in_work = coming; has_room = false; unwritten = true;
	take_buffer(coming);
	raise(RDMA_Opened)
}
inline RECV_do_TellMore() { raise(RDMA_More) }
inline cut_ends() {
	/* The frame that has ended is the one that was opened. */
	assert(ended_frame == in_work);
	ended_frame = 0;
	has_room = true;
	lower(RDMA_More)
}
inline RECV_do_TellLast() { cut_ends(); raise(RDMA_LastGood) }
inline RECV_do_TellBad() { cut_ends(); raise(RDMA_Gone) }
inline RECV_do_TellGone() { lower(RDMA_More); raise(RDMA_Gone) }
inline RECV_do_QueueWhole() { whole_frames!ended_frame; ended_frame = 0 }
inline RECV_do_Discard() {
	assert(!crc_right[ended_frame]);
	free_room(ended_frame);
	ended_frame = 0
}

inline RDMA_do_Nothing() { skip }
inline RDMA_do_WriteWhole() {
	take_buffer(newest);
	summed[newest] = false;
	writing++;
	if
	:: has_room -> behind[behind_count] = newest; behind_count++
	:: else -> whole_in_work(newest)
	fi;
	newest = 0
}
inline RDMA_do_WriteWholeAndComplete() { ahead[newest] = true; RDMA_do_WriteWhole() }
inline RDMA_do_WriteChunk() { write() }
inline RDMA_do_WriteRest() { write(); summed[in_work] = false }
inline RDMA_do_WriteRestAndComplete() { ahead[in_work] = true; RDMA_do_WriteRest() }
/* The host sees a completion. */
inline see_completed(frame) {
	assert(crc_right[frame] && sum_right[frame] && !spoiled[frame]);
	assert(freed[frame] == 0 && (frame != in_work || !unwritten));
	assert(!receive_closed[to_endpoint[frame]]);
	finished[frame]++;
	assert(finished[frame] == 1)
}
inline RDMA_do_Complete() {
	see_completed(in_work);
	free_in_order(in_work);
	next_in_work()
}
inline RDMA_do_Finish() {
	assert(finished[in_work] == 1);
	free_in_order(in_work);
	next_in_work()
}
inline RDMA_do_Fail() {
	/* The host gets the buffer back, and one completion. */
	assert(has_room && crc_right[in_work] && spoiled[in_work] && finished[in_work] == 0);
	assert(!receive_closed[to_endpoint[in_work]]);
	free_in_order(in_work);
	next_in_work()
}
inline RDMA_do_Leave() {
	/* Only a good frame is counted as refused, and none for nothing. */
	assert(has_room && crc_right[in_work] && !sum_right[in_work] && !spoiled[in_work]);
	give_buffer_back(in_work);
	free_in_order(in_work);
	next_in_work()
}
inline RDMA_do_Forget() {
	assert(writing == 0 && wrote == 0 && !write_failed);
	give_buffer_back(in_work);
	if
	:: has_room -> assert(!crc_right[in_work]); free_in_order(in_work)
	:: else ->
		spoiled[in_work] = false;
		/* It was given up, or is written again as a whole. */
		to_endpoint[in_work] = (to_endpoint[in_work] && freed[in_work] == 0)
	fi;
	next_in_work()
}
inline RDMA_do_Drop() { free_room(newest); newest = 0 }
inline RDMA_do_Close() {
	assert(writing == 0 && wrote == 0 && !write_failed);
	receive_closed[receive_closing - 1] = true;
	buffers[receive_closing - 1] = 0;
	receive_closing = 0
}

inline forget_coming() { comes_in = false; followed = false; parts_here = 0; grown = false }
active proctype wire()
{
#ifdef SATURATED
	/* All slots are free. */
	atomic {
		for (coming : 0 .. FRAMES - 1) { freed[coming] = 1 }
		begin_next()
	}
#endif
end:	do
#ifndef SATURATED
	:: atomic {
		!comes_in && begun < FRAMES ->
		coming = begun;
		begun++;
		comes_in = true; parts_here = 1;
		if :: to_endpoint[coming] = 1 :: skip fi;
		printf("frame %d\n", to_endpoint[coming])
	   }
#endif
	:: atomic {
		comes_in && parts_here < PARTS && CPU_KEEPS_UP ->
		printf("part\n");
		parts_here++;
		grown = followed;
		unwritten = (unwritten || IS_CUT);
		came_in = LOADED
	   }
#ifdef SATURATED
	:: atomic {
		comes_in && parts_here == PARTS && followed && CPU_KEEPS_UP ->
		crc_right[coming] = true;
#else
	:: atomic {
		comes_in ->
		/* What its headers say is first asked for now. */
		if
		:: crc_right[coming] = true; sum_right[coming] = true
		:: crc_right[coming] = true; sum_right[coming] = true; summed[coming] = true
		:: crc_right[coming] = true; summed[coming] = true
		:: skip
		fi;
#endif
		printf("ended %d %d %d\n", crc_right[coming], summed[coming], sum_right[coming]);
		came_in = LOADED;
		forget_coming();
		ended!coming;
		begin_next()
	   }
	:: atomic {
		comes_in && give_ups > 0 ->
		printf("give-up\n");
		give_ups--;
		freed[coming] = 1;
		to_endpoint[coming] = (to_endpoint[coming] && IS_CUT);
		forget_coming();
		gave_up = true
	   }
	od
}

#ifdef BOTH_WIRES
#define MOVING on_the_bus
#else
/* Nobody asks when a transfer comes onto the bus. */
#define MOVING (writing > 0 && !write_failed)
#endif
active proctype write_channel()
{
end:	do
#ifdef BOTH_WIRES
	:: atomic { CAN_WRITE && writing > 0 && !write_failed && !on_the_bus -> on_the_bus = true }
#endif
	:: atomic {
		MOVING ->
		printf("write-end\n");
		/* A completion that is queued behind the data is there, too, before CPU A looks. */
		if
		:: wrote == 0 && ahead[in_work] -> see_completed(in_work)
		:: wrote > 0 && ahead[behind[wrote - 1]] -> see_completed(behind[wrote - 1])
		:: else
		fi;
		on_the_bus = false; writing--; wrote++
	   }
	:: atomic {
		MOVING && write_faults > 0 ->
		printf("write-fail\n");
		write_faults--; on_the_bus = false; writing--; write_failed = true;
		/* The channel works in order. */
		if
		:: wrote == 0 -> spoiled[in_work] = true
		:: else -> spoiled[behind[wrote - 1]] = true
		fi
	   }
	od
}

inline post_buffer(endpoint) {
	printf("buffer %d\n", endpoint);
	buffers_left--;
	buffers[endpoint]++
}
active proctype receive_host()
{
end:	do
#ifdef SATURATED
	:: atomic { buffers[0] < 2 -> buffers[0]++ }
#else
	:: atomic { buffers_left > 0 && buffers[0] == 0 -> post_buffer(0) }
	:: atomic { buffers_left > 0 && buffers[1] == 0 && !receive_closed[1] -> post_buffer(1) }
	:: atomic {
		CLOSES && receive_closing == 0 && !receive_closed[1] ->
		printf("close\n");
		receive_closing = 2
	   }
#endif
	od
}

#ifndef SATURATED
/* When nothing can happen any more, nothing is left undone. */
active proctype receive_judge()
{
	byte frame;
	timeout ->
	d_step {
		assert(RECV_state == RECV_Idle && RDMA_state == RDMA_Idle);
		assert(receive_closing == 0 && len(ended) == 0 && len(whole_frames) == 0 && !gave_up);
		assert(begun == FRAMES && !comes_in);
		frame = 0;
		do
		:: frame < FRAMES ->
			assert(freed[frame] == 1);
			frame++
		:: else -> break
		od
	}
}
#endif

#define coarse_rdma (RDMA_state == RDMA_CoarseGrainedRdma)
#define fine_rdma (RDMA_state == RDMA_FineGrainedRdma || RDMA_state == RDMA_RdmaLastFragment)
#define recv (RECV_state == RECV_Recv || RECV_state == RECV_RecvThrough)
