//! The SRAM port: one access of up to 8 bytes at a time, for six clients or more.

use super::parameters::{Arbitration, Parameters};
use tigon2_chip::Cpu;
use tigon2_model::dma::Direction;

/// Who wants the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Client {
    /// The MAC stores what it receives.
    MacReceive,
    /// The MAC fetches what it sends.
    MacTransmit,
    /// The DMA channel from the host.
    DmaRead,
    /// The DMA channel to the host.
    DmaWrite,
    /// CPU A.
    CpuA,
    /// CPU B.
    CpuB,
    /// CPU C.
    CpuC,
    /// CPU D.
    CpuD,
    /// CPU E.
    CpuE,
    /// CPU F.
    CpuF,
}

impl Client {
    /// All, in the order of the fixed priority.
    pub const ALL: [Client; 10] = [
        Client::MacReceive,
        Client::MacTransmit,
        Client::DmaRead,
        Client::DmaWrite,
        Client::CpuA,
        Client::CpuB,
        Client::CpuC,
        Client::CpuD,
        Client::CpuE,
        Client::CpuF,
    ];

    /// The client of a CPU.
    #[inline]
    pub const fn cpu(cpu: Cpu) -> Client {
        match cpu {
            Cpu::A => Client::CpuA,
            Cpu::B => Client::CpuB,
            Cpu::C => Client::CpuC,
            Cpu::D => Client::CpuD,
            Cpu::E => Client::CpuE,
            Cpu::F => Client::CpuF,
        }
    }

    /// The client of a DMA channel.
    #[inline]
    pub const fn dma(direction: Direction) -> Client {
        match direction {
            Direction::Read => Client::DmaRead,
            Direction::Write => Client::DmaWrite,
        }
    }

    /// The index of the CPU of [`Client::cpu`].
    #[inline]
    pub const fn cpu_index(self) -> usize {
        (self as usize).saturating_sub(Client::CpuA as usize)
    }

    #[inline]
    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// How many there are.
const CLIENTS: usize = Client::ALL.len();
/// The clients that take turns under [`Arbitration::RoundRobin`].
const ROUND: u16 = 0b11_1111_1100;
/// The clients of the MAC.
const MAC: u16 = 0b00_0000_0011;
/// The CPUs.
const CPUS: u16 = 0b11_1111_0000;

/// The port and who waits for it.
#[derive(Clone, Debug)]
pub struct Port {
    wanted: u16,
    writing: u16,
    free_at: u64,
    beat: u64,
    turn: u64,
    arbitration: Arbitration,
    last: u16,
    last_wrote: bool,
    grants: [u64; Client::ALL.len()],
}

impl Port {
    /// A free port.
    pub fn new(parameters: &Parameters) -> Port {
        Port {
            wanted: 0,
            writing: 0,
            free_at: 0,
            beat: parameters.beat,
            turn: parameters.turn,
            arbitration: parameters.arb,
            last: 0,
            last_wrote: false,
            grants: [0; Client::ALL.len()],
        }
    }

    /// A client wants an access, from the next grant on until it is withdrawn.
    #[inline]
    pub fn request(&mut self, client: Client, write: bool) {
        self.wanted |= client.bit();
        if write {
            self.writing |= client.bit();
        } else {
            self.writing &= !client.bit();
        }
    }

    /// A client wants no more.
    #[inline]
    pub fn withdraw(&mut self, client: Client) {
        self.wanted &= !client.bit();
    }

    /// Whether anybody wants an access.
    #[inline]
    pub fn wanted(&self) -> bool {
        self.wanted != 0
    }

    /// Whether CPUs want an access that `client` has got, as a mask of their
    /// [indices](Cpu::index).
    #[inline]
    pub fn outvoted(&self, client: Client) -> u16 {
        (self.wanted & CPUS & !client.bit()) >> Client::CpuA as u16
    }

    /// Gives the port away in a cycle, if it is free and wanted.
    #[inline]
    pub fn grant(&mut self, cycle: u64) -> Option<Client> {
        if self.wanted == 0 || cycle < self.free_at {
            return None;
        }
        let chosen = self.choose(self.wanted).trailing_zeros() as usize;
        let client = Client::ALL[chosen.min(CLIENTS - 1)];
        let writes = self.writing & client.bit() != 0;
        let turned = writes != self.last_wrote;
        self.free_at = cycle + self.beat + if turned { self.turn } else { 0 };
        self.last_wrote = writes;
        self.grants[client as usize] += 1;
        Some(client)
    }

    /// The one bit of `wanted` that is next.
    #[inline]
    fn choose(&mut self, wanted: u16) -> u16 {
        match self.arbitration {
            Arbitration::Fixed => lowest(wanted),
            Arbitration::CpuFirst => first_of(&[MAC, CPUS, ROUND], wanted),
            Arbitration::RoundRobin => {
                if wanted & MAC != 0 {
                    return lowest(wanted & MAC);
                }
                // Behind the last one, or from the start again.
                let behind = wanted & ROUND & !(self.last | self.last.wrapping_sub(1));
                self.last = if behind != 0 {
                    lowest(behind)
                } else {
                    lowest(wanted)
                };
                self.last
            }
        }
    }

    /// Whether each access takes a cycle, whoever had the last one, and the order is fixed.
    pub(super) fn is_even(&self) -> bool {
        self.beat == 1 && self.turn == 0 && self.arbitration == Arbitration::Fixed
    }

    /// The engines have got so many accesses, in the order of [`Client::ALL`], and want
    /// more or not.
    #[inline(always)]
    pub(super) fn flowed(&mut self, grants: [u32; 4], wants: [bool; 4]) {
        for (client, (count, wants)) in grants.into_iter().zip(wants).enumerate() {
            self.grants[client] += u64::from(count);
            self.wanted = self.wanted & !(1 << client) | (u16::from(wants) << client);
        }
    }

    /// The CPUs that want an access, as a mask of their [indices](Cpu::index).
    #[inline]
    pub(super) fn wanted_by_cpus(&self) -> u16 {
        (self.wanted & CPUS) >> Client::CpuA as u16
    }

    /// How many accesses each client had, in the order of [`Client::ALL`].
    pub fn grants(&self) -> [u64; Client::ALL.len()] {
        self.grants
    }
}

#[inline]
const fn lowest(bits: u16) -> u16 {
    bits & bits.wrapping_neg()
}

fn first_of(groups: &[u16], wanted: u16) -> u16 {
    let group = groups.iter().find(|group| wanted & **group != 0);
    lowest(group.map_or(wanted, |group| wanted & *group))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(arb: Arbitration, turn: u64) -> Port {
        Port::new(&Parameters {
            arb,
            turn,
            ..Parameters::default()
        })
    }

    fn order(port: &mut Port, clients: &[Client], count: usize) -> Vec<Client> {
        for client in clients {
            port.request(*client, false);
        }
        (0..count as u64)
            .filter_map(|cycle| port.grant(cycle))
            .collect()
    }

    #[test]
    fn the_fixed_order_is_mac_dma_cpu_a_cpu_b_and_further() {
        let mut port = port(Arbitration::Fixed, 0);
        for client in Client::ALL.into_iter().rev() {
            port.request(client, true);
        }
        for client in Client::ALL {
            assert_eq!(port.grant(9), Some(client));
            port.free_at = 0;
            port.withdraw(client);
        }
        assert_eq!(port.grant(10), None);
        assert_eq!(port.grants(), [1; 10]);
    }

    #[test]
    fn the_others_take_turns_behind_the_mac() {
        use Client::{CpuA, CpuB, DmaRead, DmaWrite, MacReceive};
        let mut port = port(Arbitration::RoundRobin, 0);
        let clients = [CpuB, CpuA, DmaWrite, DmaRead];
        let all = [DmaRead, DmaWrite, CpuA, CpuB, DmaRead];
        assert_eq!(order(&mut port, &clients, 5), all);
        port.request(MacReceive, true);
        assert_eq!(port.grant(5), Some(MacReceive));
        port.withdraw(MacReceive);
        assert_eq!(port.grant(6), Some(DmaWrite));
    }

    #[test]
    fn cpus_may_come_before_dma() {
        use Client::{CpuB, DmaRead};
        let mut port = port(Arbitration::CpuFirst, 0);
        assert_eq!(order(&mut port, &[DmaRead, CpuB], 1), [CpuB]);
    }

    #[test]
    fn turning_round_takes_time() {
        let mut port = port(Arbitration::Fixed, 1);
        port.request(Client::DmaRead, true);
        assert!(port.grant(0).is_some());
        assert_eq!(port.grant(1), None);
        assert!(port.grant(2).is_some());
        assert!(port.grant(3).is_some());
    }
}
