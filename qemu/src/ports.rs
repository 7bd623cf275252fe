//! QEMU's memory and CPUs, and the client's memory, as the model sees them.

use crate::host::Host;
use tigon2_model::{Cpu, CpuPort, HostMemory, HostMemoryError, Sram};
use vfio_user_nic::DmaTable;

/// SRAM that lives in QEMU.
pub struct SramPort<'a, H>(pub &'a H);

impl<H: Host> Sram for SramPort<'_, H> {
    fn read(&self, address: u32, out: &mut [u8]) {
        self.0.sram_read(address, out);
    }

    fn write(&mut self, address: u32, data: &[u8]) {
        self.0.sram_write(address, data);
    }
}

/// CPUs that live in QEMU.
pub struct Cpus<'a, H>(pub &'a H);

impl<H: Host> CpuPort for Cpus<'_, H> {
    fn pc(&self, cpu: Cpu) -> u32 {
        self.0.pc(cpu)
    }

    fn gpr(&self, cpu: Cpu, n: usize) -> u32 {
        self.0.gpr(cpu, n)
    }

    fn scratch_read(&self, cpu: Cpu, offset: u32) -> u32 {
        self.0.scratch_read(cpu, offset)
    }

    fn scratch_write(&mut self, cpu: Cpu, offset: u32, value: u32) {
        self.0.scratch_write(cpu, offset, value);
    }
}

/// Memory that the vfio-user client has mapped for DMA, as far as it is there at once.
pub struct ClientMemory<'a>(pub &'a DmaTable);

impl HostMemory for ClientMemory<'_> {
    fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), HostMemoryError> {
        let length = out.len();
        self.0
            .read_now(address, out)
            .map_err(|_| HostMemoryError { address, length })
    }

    fn write(&mut self, address: u64, data: &[u8]) -> Result<(), HostMemoryError> {
        let length = data.len();
        self.0
            .write_now(address, data)
            .map_err(|_| HostMemoryError { address, length })
    }

    fn waits(&self, address: u64, length: usize) -> bool {
        self.0.waits(address, length)
    }
}
