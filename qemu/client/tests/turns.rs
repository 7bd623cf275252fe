//! Tests nested accesses by the guest, over the C interface that QEMU uses.
//!
//! The card reads the guest's memory while it answers, and reading that memory causes another
//! access to the card.

use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tigon2_qemu_client::entry::tigon2_client_open;
use tigon2_qemu_client::ffi::{ABI, ClientHandle, ClientOps, Config, HostOps, Nature};
use vfio_user_nic::message::region;
use vfio_user_nic::{
    Device, DeviceLayout, Disconnect, DmaTable, Errno, Server, ServerConfig, ServerThread,
};

/// Reading this register makes the card read the guest's memory first.
const DMA_NOW: u64 = 0x100;
const MEMORY: u64 = 0x1000;
const PATIENCE: Duration = Duration::from_secs(10);

/// A card that hands the writes to BAR 0 on in their order.
struct Registers {
    dma: DmaTable,
    writes: Sender<(u64, u32)>,
}

impl Device for Registers {
    fn region_read(&mut self, index: u32, offset: u64, data: &mut [u8]) -> Result<(), Errno> {
        data.fill(0);
        if (index, offset) == (region::BAR0, DMA_NOW) {
            self.dma.read(MEMORY, data).map_err(|_| Errno::FAULT)?;
        }
        Ok(())
    }

    fn region_write(&mut self, _: u32, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let word = data.try_into().map_err(|_| Errno::INVAL)?;
        let write = (offset, u32::from_le_bytes(word));
        self.writes.send(write).map_err(|_| Errno::IO)
    }

    fn reset(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    fn disconnected(&mut self, _: &Disconnect) {}
}

/// The guest's machine: QEMU's part.
struct Guest {
    client: ClientHandle,
    ops: Option<ClientOps>,
    /// What a read from within another access said.
    inner_read: Option<bool>,
    reported: Vec<String>,
}

impl Guest {
    /// # Safety
    /// `device` must be what the host's operations have, a guest.
    unsafe fn of<'a>(device: *mut c_void) -> &'a Mutex<Guest> {
        // SAFETY: the caller's promise.
        unsafe { &*device.cast::<Mutex<Guest>>() }
    }
}

/// The guest's memory is read: two writes to the card and a read come from within that.
unsafe extern "C" fn dma_read(device: *mut c_void, _: u64, data: *mut c_void, len: u32) -> bool {
    // SAFETY: the guest of this test, and a buffer of `len` bytes.
    let guest = unsafe {
        data.cast::<u8>().write_bytes(0x5A, len as usize);
        Guest::of(device)
    };
    let (client, ops) = {
        let guest = guest.lock().expect("no panic");
        (guest.client, guest.ops.expect("it is connected"))
    };
    for (offset, value) in [(0x10, 1_u32), (0x14, 2)] {
        let data = value.to_le_bytes();
        // SAFETY: an open client, four bytes.
        unsafe { (ops.bar_write)(client, offset, data.as_ptr().cast(), 4, false) };
    }
    let mut word = [0_u8; 4];
    // SAFETY: an open client, four bytes.
    let read = unsafe { (ops.bar_read)(client, 0x10, word.as_mut_ptr().cast(), 4, false) };
    guest.lock().expect("no panic").inner_read = Some(read);
    true
}

unsafe extern "C" fn dma_write(_: *mut c_void, _: u64, _: *const c_void, _: u32) -> bool {
    false
}

unsafe extern "C" fn reported(device: *mut c_void, message: *const c_char) {
    // SAFETY: the guest of this test, and a string that ends with a zero.
    let (guest, text) = unsafe { (Guest::of(device), CStr::from_ptr(message)) };
    let text = text.to_string_lossy().into_owned();
    guest.lock().expect("no panic").reported.push(text);
}

fn card(folder: &TempDir) -> (Receiver<(u64, u32)>, ServerThread, CString) {
    let socket = folder.path().join("card");
    let layout = DeviceLayout::pci(0x4000);
    let server = Server::bind(&socket, ServerConfig::new(layout)).expect("a socket");
    let (writes, written) = channel();
    let registers = Registers {
        dma: server.dma(),
        writes,
    };
    let server = server
        .spawn(Arc::new(Mutex::new(registers)))
        .expect("a thread");
    let path = CString::new(socket.to_str().expect("a path")).expect("no zeros");
    (written, server, path)
}

#[test]
fn accesses_from_within_an_access_are_neither_lost_nor_silent() {
    let folder = TempDir::new().expect("a folder");
    let (written, _server, path) = card(&folder);
    let guest = Box::new(Mutex::new(Guest {
        client: std::ptr::null_mut(),
        ops: None,
        inner_read: None,
        reported: Vec::new(),
    }));
    let host = HostOps {
        abi: ABI,
        bytes: size_of::<HostOps>() as u32,
        device: std::ptr::from_ref(&*guest).cast_mut().cast(),
        dma_read,
        dma_write,
        gone: reported,
        refused: reported,
    };
    let config = Config {
        socket: path.as_ptr(),
        timeout_ms: 5000,
    };
    let (mut ops, mut nature) = (MaybeUninit::uninit(), MaybeUninit::<Nature>::uninit());
    let mut message: [c_char; 256] = [0; 256];
    // SAFETY: all arguments are as `client.h` wants them; the guest outlives the client.
    let (client, ops) = unsafe {
        let client = tigon2_client_open(
            &raw const host,
            &raw const config,
            ops.as_mut_ptr(),
            nature.as_mut_ptr(),
            message.as_mut_ptr(),
            message.len(),
        );
        assert!(!client.is_null(), "{:?}", CStr::from_ptr(message.as_ptr()));
        (client, ops.assume_init())
    };
    {
        let mut guest = guest.lock().expect("no panic");
        guest.client = client;
        guest.ops = Some(ops);
    }

    let (mut word, after) = ([0_u8; 4], 3_u32.to_le_bytes());
    // SAFETY: an open client, buffers of their lengths; no file.
    let read = unsafe {
        assert!((ops.map)(client, MEMORY, 0x1000, true, -1, 0));
        let read = (ops.bar_read)(client, DMA_NOW, word.as_mut_ptr().cast(), 4, false);
        (ops.bar_write)(client, 0x18, after.as_ptr().cast(), 4, false);
        read
    };
    let reported = || guest.lock().expect("no panic").reported.clone();
    assert!(read, "the access further out is answered: {:?}", reported());
    assert_eq!(word, [0x5A; 4]);

    for expected in [(0x10, 1), (0x14, 2), (0x18, 3)] {
        assert_eq!(written.recv_timeout(PATIENCE), Ok(expected));
    }
    let (inner_read, reported) = {
        let guest = guest.lock().expect("no panic");
        (guest.inner_read, guest.reported.clone())
    };
    assert_eq!(inner_read, Some(false), "as in an empty slot");
    assert!(
        matches!(&reported[..], [line] if line.contains("within another")),
        "{reported:?}"
    );

    let mut text: [c_char; 64] = [0; 64];
    // SAFETY: an open client, which is closed once; a buffer of its length.
    let counts = unsafe {
        (ops.counts)(client, text.as_mut_ptr(), text.len());
        (ops.close)(client);
        CStr::from_ptr(text.as_ptr())
    };
    assert_eq!(counts.to_str(), Ok("deferred=2 dropped=1"));
    assert!(written.try_recv().is_err(), "each write comes once");
}
