//! For any plan, nothing overlaps, and everything is inside and aligned.

use proptest::prelude::*;

use super::*;
use crate::nic::rings::Ring;

impl Span {
    fn of<const WORDS: usize>(table: &TableSpan<WORDS>) -> &Span {
        &table.span
    }
}

fn send_plan() -> impl Strategy<Value = SendPlan> {
    let entries = prop::sample::select(vec![64u32, 128, 256, 512]);
    (entries, 11u32..15, any::<bool>()).prop_map(|(entries, slot, host)| SendPlan {
        entries,
        slot: 1 << slot,
        place: if host {
            SendRingPlace::Host
        } else {
            SendRingPlace::Card
        },
    })
}

fn buffer_plan() -> impl Strategy<Value = BufferPlan> {
    let rings = vec![Ring::Standard, Ring::Jumbo, Ring::Mini];
    let ring = prop::sample::select(rings);
    (ring, 1u16..256, 6u32..15, any::<bool>()).prop_map(|(ring, buffers, slot, extended)| {
        BufferPlan {
            extended,
            ..BufferPlan::classic(ring, buffers, 1 << slot)
        }
    })
}

fn receive_plan() -> impl Strategy<Value = ReceivePlan> {
    let returns = prop::sample::select(vec![64u32, 512, 1024, 2048]);
    let rings = prop::collection::vec(buffer_plan(), 1..4);
    (returns, rings).prop_map(|(returns, rings)| ReceivePlan {
        returns,
        rings,
        queue: None,
    })
}

fn plan() -> impl Strategy<Value = Plan> {
    let send = prop::collection::vec(send_plan(), 1..3);
    let receive = prop::collection::vec(receive_plan(), 1..9);
    (send, receive).prop_map(|(send, receive)| Plan { send, receive })
}

/// A span with the alignment that it needs.
type Aligned<'a> = (&'a Span, usize);

fn ring_of(span: &Span) -> Aligned<'_> {
    (span, span.bytes.next_power_of_two())
}

/// Every span of every piece of memory, with the bytes of the piece.
fn pieces(layout: &CardLayout) -> Vec<(Vec<Aligned<'_>>, usize)> {
    let control = &layout.control;
    let mut pieces = vec![(
        vec![
            ring_of(Span::of(&control.info)),
            ring_of(Span::of(&control.event_producer)),
            ring_of(Span::of(&control.events)),
        ],
        control.bytes,
    )];
    for send in &layout.send {
        let mut spans = vec![
            (Span::of(&send.consumer), INDEX_ALIGN),
            (&send.slots.span, send.slots.bytes),
        ];
        spans.extend(send.bds.iter().map(|bds| ring_of(Span::of(bds))));
        pieces.push((spans, send.bytes));
    }
    for receive in &layout.receive {
        let mut spans = vec![
            (Span::of(&receive.producer), INDEX_ALIGN),
            ring_of(Span::of(&receive.returns)),
        ];
        for (table, slots) in &receive.rings {
            spans.push(ring_of(match table {
                BufferTable::Normal(table) => Span::of(table),
                BufferTable::Extended(table) => Span::of(table),
            }));
            spans.push((&slots.span, slots.bytes));
        }
        pieces.push((spans, receive.bytes));
    }
    pieces
}

proptest! {
    #[test]
    fn nothing_overlaps_and_everything_is_inside(plan in plan()) {
        let layout = CardLayout::of(&plan);
        prop_assert_eq!(layout.send.len(), plan.send.len());
        prop_assert_eq!(layout.receive.len(), plan.receive.len());
        for (mut spans, bytes) in pieces(&layout) {
            spans.sort_by_key(|(span, _)| span.offset);
            for (span, align) in &spans {
                prop_assert!(span.offset.is_multiple_of(*align), "{:?} at {}", span, align);
                prop_assert!(span.bytes > 0 && span.offset + span.bytes <= bytes);
            }
            for pair in spans.windows(2) {
                let [(first, _), (second, _)] = pair else { continue };
                prop_assert!(first.offset + first.bytes <= second.offset);
            }
        }
    }

    /// A BD, a slot and an index have the sizes that the plan asks for.
    #[test]
    fn every_region_has_its_size(plan in plan()) {
        let layout = CardLayout::of(&plan);
        for (send, plan) in layout.send.iter().zip(&plan.send) {
            prop_assert_eq!(send.slots.span.bytes, plan.entries as usize * plan.slot);
            let bds = send.bds.as_ref().map(|bds| bds.span.bytes);
            let host = plan.place == SendRingPlace::Host;
            prop_assert_eq!(bds, host.then_some(plan.entries as usize * 16));
        }
        for (receive, plan) in layout.receive.iter().zip(&plan.receive) {
            prop_assert_eq!(receive.returns.span.bytes, plan.returns as usize * 32);
            for ((table, slots), plan) in receive.rings.iter().zip(&plan.rings) {
                let (bytes, bd) = match table {
                    BufferTable::Normal(table) => (table.span.bytes, 32),
                    BufferTable::Extended(table) => (table.span.bytes, 64),
                };
                prop_assert_eq!(bytes, plan.entries as usize * bd);
                prop_assert_eq!(slots.span.bytes, usize::from(plan.buffers) * plan.slot);
            }
        }
    }
}
