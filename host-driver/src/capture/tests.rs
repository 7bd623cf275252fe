use super::*;

fn write_file(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("room for it");
    file.flush().expect("room for it");
    file
}

#[test]
fn frames_come_back_byte_for_byte_and_in_order() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let frames: Vec<Vec<u8>> = (1..=60u8)
        .map(|n| (0..usize::from(n) * 25).map(|i| n ^ i as u8).collect())
        .collect();
    let mut writer = FrameWriter::create(file.path()).unwrap();
    for (index, frame) in frames.iter().enumerate() {
        writer
            .write(Duration::from_micros(index as u64), frame)
            .unwrap();
    }
    assert_eq!(writer.frames(), 60);
    writer.finish().unwrap();

    let mut reader = FrameReader::open(file.path()).unwrap();
    for (index, frame) in frames.iter().enumerate() {
        let read = reader.next_frame().unwrap().expect("one frame more");
        assert_eq!(&read.bytes, frame);
        assert_eq!(read.time, Duration::from_micros(index as u64));
    }
    assert_eq!(reader.next_frame().unwrap(), None);
}

#[test]
fn what_is_no_capture_is_refused() {
    let text = write_file(b"this is not a capture, it only lies in a file of that name");
    assert!(matches!(
        FrameReader::open(text.path()),
        Err(CaptureError::Format { .. })
    ));
    let empty = write_file(b"");
    assert!(FrameReader::open(empty.path()).is_err());
    assert!(matches!(
        FrameReader::open(Path::new("/nonexistent/capture.pcap")),
        Err(CaptureError::File { .. })
    ));
}

#[test]
fn a_capture_of_another_link_type_is_refused() {
    let header = PcapHeader {
        datalink: DataLink::RAW,
        ..PcapHeader::default()
    };
    let bytes = PcapWriter::with_header(Vec::new(), header)
        .unwrap()
        .into_writer();
    let file = write_file(&bytes);
    assert!(matches!(
        FrameReader::open(file.path()),
        Err(CaptureError::LinkType {
            link: DataLink::RAW,
            ..
        })
    ));
}

#[test]
fn a_frame_that_was_cut_is_an_error() {
    let mut writer = PcapWriter::new(Vec::new()).unwrap();
    writer
        .write_packet(&PcapPacket::new(Duration::ZERO, 100, &[1; 64]))
        .unwrap();
    let file = write_file(&writer.into_writer());
    let mut reader = FrameReader::open(file.path()).unwrap();
    assert!(matches!(
        reader.next_frame(),
        Err(CaptureError::Cut {
            number: 1,
            kept: 64,
            original: 100,
            ..
        })
    ));
}

#[test]
fn a_file_that_ends_in_the_middle_of_a_frame_is_an_error() {
    let mut writer = FrameWriter::new(Vec::new(), "memory".into()).unwrap();
    writer.write(Duration::ZERO, &[7; 100]).unwrap();
    let bytes = writer.finish().unwrap();
    let file = write_file(&bytes[..bytes.len() - 10]);
    let mut reader = FrameReader::open(file.path()).unwrap();
    assert!(matches!(
        reader.next_frame(),
        Err(CaptureError::Format { .. })
    ));
}
