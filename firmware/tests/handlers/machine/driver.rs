//! What the host does, word by word: mailboxes, rings and its memory.

use super::*;
use host_driver::nic::{memory_window, read_trace};
use host_interface::trace::TraceEntry;

impl Machine {
    /// The host writes a mailbox.
    pub fn ring(&mut self, mailbox: Mailbox, value: u32) {
        self.set_bar(mailbox.bar_offset(), value);
    }

    /// The host writes the mailbox with a number.
    pub fn ring_number(&mut self, number: u32, value: u32) {
        let offset = tigon2_chip::mailbox::BAR_BASE + 8 * number + 4;
        self.set_bar(offset, value);
    }

    /// A word of the host's memory, by its offset.
    pub fn host_word(&self, offset: u64) -> u32 {
        self.memory.read_word(offset as usize).expect("mapped")
    }

    /// Writes the host's memory at an offset.
    pub fn host_write(&self, offset: u64, bytes: &[u8]) {
        let written = self.memory.write_bytes(offset as usize, bytes);
        written.expect("mapped");
    }

    /// Bytes of the host's memory, by its address.
    pub fn host_bytes(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let offset = (address - HOST_BASE) as usize;
        self.memory.read_bytes(offset, &mut bytes).expect("mapped");
        bytes
    }

    /// What the host's handler does first: clears the interrupt and lets more come.
    pub fn acknowledge(&mut self) {
        self.ring(Mailbox::HostInterrupt, 0);
        self.settle();
    }

    /// The events since the last call.
    pub fn events(&mut self) -> Vec<Event> {
        let words = self.event_words().into_iter();
        words
            .map(|word| Event::unpack(word).expect("an event"))
            .collect()
    }

    /// The first words of the events since the last call.
    pub fn event_words(&mut self) -> Vec<u32> {
        let producer = self.host_word(EVENT_PRODUCER);
        let mut events = Vec::new();
        while self.event_consumer != producer {
            events.push(self.host_word(EVENT_RING + 8 * u64::from(self.event_consumer)));
            self.event_consumer = (self.event_consumer + 1) % 256;
        }
        let word = Gencom::EventConsumer.bar_offset();
        self.set_bar(word, self.event_consumer);
        self.acknowledge();
        events
    }

    /// Where the host reads its next event.
    pub fn event_consumer(&self) -> u32 {
        self.event_consumer
    }

    /// Queues words in the command ring and rings.
    pub fn command(&mut self, words: &[u32]) {
        for word in words {
            let offset = 0x700 + 4 * self.command_producer;
            self.set_bar(offset, *word);
            self.command_producer = (self.command_producer + 1) % 64;
        }
        self.ring(Mailbox::CommandProducer, self.command_producer);
        self.settle();
    }

    /// Gives receive buffers: buffer n is `index` and `opaque` n modulo the number of them.
    pub fn give_buffers(&mut self, count: u32) {
        for _ in 0..count {
            let at = self.standard_producer;
            let buffer = u64::from(at) % BUFFERS;
            let address = HOST_BASE + RECEIVE_BUFFERS + buffer * BUFFER;
            let bd = ReceiveBd::new(address, 1536, BdFlags::new(), at as u16, 0xAB00 + at);
            self.put_receive_bd(bd);
        }
        self.ring(Mailbox::StandardProducer, self.standard_producer);
        self.settle();
    }

    /// Puts a BD into the standard ring without ringing.
    pub fn put_receive_bd(&mut self, bd: ReceiveBd) {
        let offset = STANDARD_RING + 32 * u64::from(self.standard_producer);
        self.host_write(offset, &words_to_host(bd.as_bytes()));
        self.standard_producer = (self.standard_producer + 1) % 512;
    }

    pub fn standard_producer(&self) -> u32 {
        self.standard_producer
    }

    /// Return BDs since the last call.
    pub fn returned(&mut self) -> Vec<ReturnBd> {
        let producer = self.host_word(RETURN_PRODUCER);
        let mut bds = Vec::new();
        while self.return_consumer != producer {
            let at = RETURN_RING + 32 * u64::from(self.return_consumer);
            let words = std::array::from_fn(|n| self.host_word(at + 4 * n as u64));
            bds.push(ReturnBd::from_words(words));
            self.return_consumer = (self.return_consumer + 1) % 1024;
        }
        let word = Gencom::ReceiveReturnConsumer.bar_offset();
        self.set_bar(word, self.return_consumer);
        self.acknowledge();
        bds
    }

    /// Return BDs since the last call, each with the bytes of its frame.
    pub fn received(&mut self) -> Vec<(ReturnBd, Vec<u8>)> {
        let producer = self.host_word(RETURN_PRODUCER);
        let mut frames = Vec::new();
        while self.return_consumer != producer {
            let at = RETURN_RING + 32 * u64::from(self.return_consumer);
            let bd =
                ReturnBd::from_words(std::array::from_fn(|n| self.host_word(at + 4 * n as u64)));
            let bytes = self.host_bytes(bd.address.get(), bd.length().into());
            frames.push((bd, bytes));
            self.return_consumer = (self.return_consumer + 1) % self.return_entries;
        }
        if self.tells_return_consumer {
            let word = Gencom::ReceiveReturnConsumer.bar_offset();
            self.set_bar(word, self.return_consumer);
        }
        self.acknowledge();
        frames
    }

    /// A frame from the wire; the handlers run.
    pub fn arrive(&mut self, frame: &[u8]) -> Reception {
        let reception = self.bench().receive(frame);
        self.settle();
        reception
    }

    /// Puts one send BD into the ring without ringing.
    pub fn put_send_bd(&mut self, bd: SendBd) {
        match self.nic_send_ring {
            Some(ring) => self.through_window(ring + 16 * self.send_producer, &bd.words()),
            None => {
                let offset = SEND_RING + 16 * u64::from(self.send_producer);
                self.host_write(offset, &words_to_host(bd.as_bytes()));
            }
        }
        self.send_producer = (self.send_producer + 1) % self.send_entries;
    }

    /// Queues a frame in pieces without ringing.
    pub fn put_frame(&mut self, pieces: &[&[u8]]) {
        self.put_frame_with(pieces, BdFlags::new(), 0);
    }

    /// The same with flags in each BD, the VLAN flag in the first only.
    pub fn put_frame_with(&mut self, pieces: &[&[u8]], flags: BdFlags, tag: u16) {
        for (index, piece) in pieces.iter().enumerate() {
            let buffer = u64::from(self.send_producer) % BUFFERS;
            // An odd offset: any alignment must do.
            let offset = SEND_BUFFERS + buffer * BUFFER + index as u64;
            self.host_write(offset, piece);
            let flags = flags
                .with_end(index + 1 == pieces.len())
                .with_vlan_tag(flags.vlan_tag() && index == 0);
            self.put_send_bd(SendBd::new(
                HOST_BASE + offset,
                piece.len() as u16,
                flags,
                tag,
            ));
        }
    }

    /// Tells the firmware of all that was queued.
    pub fn send(&mut self) {
        self.ring(Mailbox::SendProducer, self.send_producer);
        self.settle();
    }

    /// Writes words of NIC memory through the window of the BAR.
    pub fn through_window(&mut self, address: u32, words: &[u32]) {
        let written = memory_window::write(&mut self.card, address, words);
        written.expect("NIC memory");
    }

    /// The trace, oldest entry first.
    pub fn trace(&mut self) -> Vec<TraceEntry> {
        read_trace(&mut self.card).expect("a trace")
    }

    pub fn send_producer(&self) -> u32 {
        self.send_producer
    }

    /// The consumer index in host memory.
    pub fn send_consumer(&self) -> u32 {
        self.host_word(SEND_CONSUMER)
    }

    /// Refreshed statistics in host memory, by word.
    pub fn refreshed(&self, word: u64) -> u32 {
        self.host_word(REFRESH + 4 * word)
    }

    /// Statistics in the general information block, by word.
    pub fn statistics(&self, word: u64) -> u32 {
        self.host_word(INFORMATION + 4 * word)
    }

    /// Whether the guarded part of the host's memory is as it was.
    pub fn guard_is_untouched(&self) -> bool {
        let bytes = self.host_bytes(HOST_BASE + GUARD.start as u64, GUARD.len());
        bytes.iter().all(|byte| *byte == 0)
    }
}

/// Structures are words; this host is little-endian, whatever runs the test.
pub fn words_to_host(bytes: &[u8]) -> Vec<u8> {
    bytes
        .chunks_exact(4)
        .flat_map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]).to_le_bytes())
        .collect()
}
