//! Two cards on one wire, and the burst of Figure 3.

use eudp::{Checksum, CutThrough};
use tigon_bench::eudp::Pair;
use tigon_bench::eudp::burst::{Posted, first_fetch};

use crate::card::image;

/// From process to process, no datagram takes more than 1 % longer cut through than stored, give or take
/// half of what CPU A needs to look at the wire.
#[test]
fn no_size_takes_longer_cut_through() {
    let image = image();
    let short = [1, 400, 800, 1472].map(|bytes| (bytes, 1500, 31));
    let long = [4000, 4055, 4600, 5000, 6000, 8972].map(|bytes| (bytes, 9000, 31));
    let longer = [(32_768, 1500, 5), (32_768, 9000, 5), (65_507, 9000, 3)];
    let mut slower = Vec::new();
    for (bytes, mtu, count) in short.into_iter().chain(long).chain(longer) {
        let one_way = |cut| {
            let pair = Pair::start(&image, cut, Checksum::None, mtu);
            let mut pair = pair.unwrap_or_else(|error| panic!("{error:#}"));
            let time = pair.one_way(bytes, count);
            time.unwrap_or_else(|error| panic!("{bytes} bytes: {error:#}"))
        };
        let [stored, through] = [CutThrough::Off, CutThrough::OfBus].map(one_way);
        println!("{bytes} bytes, MTU {mtu}: {stored:.1} us stored, {through:.1} cut through");
        // The wire takes 8 ns a byte.
        let wire = bytes as f64 * 0.008;
        assert!(
            (wire + 10.0..3.0 * wire + 70.0).contains(&stored),
            "{bytes}: {stored}"
        );
        if through > 1.01 * stored + 0.1 {
            slower.push((bytes, mtu, stored, through));
        }
    }
    assert!(slower.is_empty(), "{slower:?}");
}

/// With `Full` the fragment with the UDP header leaves last, and the other card places what comes
/// before it on trial. With `Leading` it comes first, and no endpoint has to be connected.
#[test]
fn a_long_datagram_goes_from_process_to_process() {
    let image = image();
    let sizes = [(1473, 1500), (30_001, 1500), (65_507, 1500), (65_507, 9000)];
    for (checksum, (bytes, mtu)) in [Checksum::Full, Checksum::Leading]
        .into_iter()
        .flat_map(|checksum| sizes.map(|size| (checksum, size)))
    {
        let pair = Pair::start(&image, CutThrough::OfBus, checksum, mtu);
        let mut pair = pair.unwrap_or_else(|error| panic!("{error:#}"));
        let one_way = pair.one_way(bytes, 3);
        let one_way = one_way.unwrap_or_else(|error| panic!("{bytes} bytes: {error:#}"));
        println!("{checksum:?}, {bytes} bytes, MTU {mtu}: {one_way:.1} us");
        // The wire alone takes 8 ns a byte.
        let wire = bytes as f64 * 0.008;
        assert!(one_way < 4.0 * wire + 100.0, "{bytes}: {one_way}");
    }
}

/// Ten datagrams of 32 KB: the wire rests for 2 % of the time between the first byte and the last, at
/// most.
#[test]
fn the_wire_rests_between_the_frames_of_long_datagrams() {
    let image = image();
    let mut rests = [0.0; 2];
    for (rests, mtu) in rests.iter_mut().zip([1500, 9000]) {
        let pair = Pair::start(&image, CutThrough::OfBus, Checksum::None, mtu);
        let mut pair = pair.unwrap_or_else(|error| panic!("{error:#}"));
        *rests = pair
            .rests(32_768, 10)
            .unwrap_or_else(|error| panic!("{error:#}"));
        println!("MTU {mtu}: the wire rests for {:.1} %", 100.0 * *rests);
    }
    assert!(rests.iter().all(|rests| *rests < 0.02), "{rests:?}");
}

/// With two levels a burst does not make the first datagram late; with one level it does.
#[test]
fn a_burst_of_descriptors_leaves_the_bus_to_data() {
    let image = image();
    let time = |posted| {
        let time = first_fetch(&image, posted, 1000);
        time.unwrap_or_else(|error| panic!("{error:#}"))
    };
    let alone = time(Posted::Alone);
    let [one, each, some] = [
        Posted::OneLevel,
        Posted::DoorbellEach,
        Posted::DoorbellForSome,
    ]
    .map(time);
    println!(
        "{alone:.0} ns alone; {one:.0} one level, {each:.0} a doorbell each, {some:.0} for 64"
    );
    assert!(some <= 1.05 * alone, "{some} for {alone}");
    assert!(one > some, "{one} for {some}");
}
