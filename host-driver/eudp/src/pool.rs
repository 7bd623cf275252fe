//! The pool: memory for datagrams whose UDP header comes later than other fragments.

use crate::broker::{Eudp, Failed};
use crate::card::{Card, Memory};
use crate::config::EndpointConfig;
use crate::endpoint::{Completion, Endpoint, Pooled};
use crate::error::{EudpError, SendError};
use crate::region::Region;
use host_interface::eudp::{POOL, SLOTS};
use std::net::Ipv4Addr;

/// Bytes of a buffer, for the longest datagram.
const BUFFER: u32 = 1 << 16;
/// Those that a descriptor can name.
const LENT: u32 = BUFFER - 1;

/// What a pool is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// The address of the endpoints that it is for.
    pub address: Ipv4Addr,
    /// Their VLAN.
    pub vlan: Option<u16>,
    /// Datagrams that it holds: 1 to [`SLOTS`](crate::SLOTS). Each takes 64 KB.
    pub buffers: u32,
}

/// Memory for datagrams of which another fragment comes before the one with the UDP header, from a
/// source to which no endpoint is [connected](EndpointConfig::connected).
///
/// The card puts them together here. When the header comes it takes the next descriptor of the endpoint
/// whose port that names, of one piece; [`poll`](Self::poll) moves the datagram there. While a pool is
/// open, the kernel gets no datagrams of its address whose fragments come in another order.
#[derive(Debug)]
pub struct Pool<M: Memory> {
    endpoint: Endpoint<M>,
    memory: M,
    region: Region,
    /// All of them are the card's between two calls.
    buffers: u32,
    moved: u32,
}

impl Eudp {
    /// Opens the pool of an address and a VLAN. It takes the place of an endpoint.
    ///
    /// # Errors
    /// If there is no room, or the firmware refuses: there is one already.
    pub fn open_pool<C: Card>(
        &mut self,
        card: &mut C,
        config: PoolConfig,
    ) -> Result<Pool<C::Memory>, Failed<C>> {
        let PoolConfig {
            address,
            vlan,
            buffers,
        } = config;
        if !(1..=SLOTS).contains(&buffers) {
            return Err(EudpError::Buffers(buffers));
        }
        let config = EndpointConfig {
            address,
            vlan,
            descriptors: SLOTS,
            pushed: SLOTS,
            ..EndpointConfig::default()
        };
        let allocated = card.allocate((buffers * BUFFER) as usize);
        let memory = allocated.map_err(EudpError::Card)?;
        let mut endpoint = self.open_at(card, config, POOL)?;
        let region = match self.register(card, &mut endpoint, &memory) {
            Ok(region) => region,
            Err(error) => {
                self.close(card, endpoint)?;
                return Err(error);
            }
        };
        let mut pool = Pool {
            endpoint,
            memory,
            region,
            buffers,
            moved: 0,
        };
        for buffer in 0..buffers {
            pool.lend(card, buffer).map_err(EudpError::Post)?;
        }
        Ok(pool)
    }

    /// Closes a pool. What has begun in it is lost, and the endpoints' descriptors that it has taken
    /// come back with [`Status::Incomplete`](crate::Status::Incomplete).
    ///
    /// # Errors
    /// If the card is gone or does not answer: then its memory must not be used otherwise.
    pub fn close_pool<C: Card>(
        &mut self,
        card: &mut C,
        pool: Pool<C::Memory>,
    ) -> Result<(), Failed<C>> {
        self.close(card, pool.endpoint)
    }
}

impl<M: Memory> Pool<M> {
    /// The same as [`Endpoint::poll`] of an endpoint of this pool's address and VLAN; moves its datagram if
    /// that is in the pool.
    ///
    /// # Errors
    /// As there.
    pub fn poll<C: Card<Memory = M>>(
        &mut self,
        card: &mut C,
        endpoint: &mut Endpoint<M>,
    ) -> Result<Option<Completion>, SendError<C::Error>> {
        self.take_back(card)?;
        let Some(pooled) = endpoint.pooled() else {
            return endpoint.poll(card);
        };
        let Some(data) = self.data(&pooled) else {
            // The card has completed what it was not given.
            endpoint.lose();
            return Ok(None);
        };
        let completion = endpoint.deliver(card, &pooled, &data)?;
        self.endpoint.received_elsewhere();
        self.lend(card, pooled.buffer)?;
        self.moved = self.moved.wrapping_add(1);
        Ok(completion)
    }

    /// Datagrams that were moved; wraps.
    pub fn moved(&self) -> u32 {
        self.moved
    }

    /// Buffers of datagrams that were given up go back to the card.
    fn take_back<C: Card<Memory = M>>(&mut self, card: &mut C) -> Result<(), SendError<C::Error>> {
        while let Some(completion) = self.endpoint.poll(card)? {
            if let Completion::Received { cookie, .. } = completion
                && cookie < self.buffers
            {
                self.lend(card, cookie)?;
            }
        }
        Ok(())
    }

    /// What is in a buffer, if there is such a one.
    fn data(&self, pooled: &Pooled) -> Option<Vec<u8>> {
        if pooled.buffer >= self.buffers || pooled.bytes > LENT as usize {
            return None;
        }
        let mut data = vec![0; pooled.bytes];
        let at = (pooled.buffer * BUFFER) as usize;
        self.memory.read_bytes(at, &mut data).ok()?;
        Some(data)
    }

    fn lend<C: Card<Memory = M>>(
        &mut self,
        card: &mut C,
        buffer: u32,
    ) -> Result<(), SendError<C::Error>> {
        let piece = self.region.segment(buffer * BUFFER, LENT);
        self.endpoint.post(card, &[piece], buffer)
    }
}
