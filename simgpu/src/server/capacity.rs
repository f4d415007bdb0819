//! Whose memory is where: one count per device, shared by all processes, and one per process.
//!
//! Pure. A charge is taken whole or refused whole, and no device ever holds more than it has. Next file
//! of the walk: `server/request.rs`.

/// Memory of one process on one device, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Use {
    pub used: u64,
    pub high_water: u64,
}

impl Use {
    fn add(&mut self, bytes: u64) {
        self.used += bytes;
        self.high_water = self.high_water.max(self.used);
    }
}

pub(super) struct Capacity {
    capacity: Vec<u64>,
    devices: Vec<Use>,
    /// By client, then device.
    clients: Vec<Vec<Use>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    NoSuchDevice,
    Full,
    /// More given back than held.
    NotHeld,
}

impl Capacity {
    pub fn new(capacity: Vec<u64>) -> Capacity {
        Capacity {
            devices: vec![Use::default(); capacity.len()],
            clients: Vec::new(),
            capacity,
        }
    }

    pub fn capacity(&self, device: usize) -> u64 {
        self.capacity[device]
    }

    pub fn device(&self, device: usize) -> Use {
        self.devices[device]
    }

    pub fn client(&self, client: usize, device: usize) -> Use {
        self.clients
            .get(client)
            .map_or(Use::default(), |uses| uses[device])
    }

    pub fn charge(&mut self, client: usize, device: usize, bytes: u64) -> Result<(), Refused> {
        let (Some(node), Some(&capacity)) = (self.devices.get_mut(device), self.capacity.get(device)) else {
            return Err(Refused::NoSuchDevice);
        };
        if bytes > capacity - node.used {
            return Err(Refused::Full);
        }
        if self.clients.len() <= client {
            self.clients
                .resize(client + 1, vec![Use::default(); self.capacity.len()]);
        }
        node.add(bytes);
        self.clients[client][device].add(bytes);
        assert!(node.used <= capacity, "device {device} holds more than it has");
        Ok(())
    }

    pub fn discharge(&mut self, client: usize, device: usize, bytes: u64) -> Result<(), Refused> {
        if device >= self.devices.len() {
            return Err(Refused::NoSuchDevice);
        }
        let held = self.clients.get_mut(client).map(|uses| &mut uses[device]);
        let held = held.filter(|held| held.used >= bytes).ok_or(Refused::NotHeld)?;
        held.used -= bytes;
        self.devices[device].used -= bytes;
        Ok(())
    }

    /// Takes back all that the dead client held; gives what it had per device.
    pub fn release(&mut self, client: usize) -> Vec<Use> {
        let none = vec![Use::default(); self.capacity.len()];
        let Some(uses) = self.clients.get_mut(client) else {
            return none;
        };
        let gone = std::mem::replace(uses, none);
        for (device, had) in self.devices.iter_mut().zip(&gone) {
            device.used -= had.used;
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_filled_to_the_byte_and_never_beyond() {
        let mut c = Capacity::new(vec![100, 50]);
        assert_eq!(c.charge(0, 0, 60), Ok(()));
        assert_eq!(c.charge(3, 0, 41), Err(Refused::Full));
        assert_eq!(c.charge(3, 0, u64::MAX), Err(Refused::Full));
        assert_eq!(c.charge(3, 0, 40), Ok(()));
        assert_eq!(c.charge(3, 0, 1), Err(Refused::Full));
        assert_eq!(c.charge(3, 1, 50), Ok(()));
        assert_eq!(c.charge(3, 2, 1), Err(Refused::NoSuchDevice));
        assert_eq!(
            c.device(0),
            Use {
                used: 100,
                high_water: 100
            }
        );
    }

    #[test]
    fn only_what_is_held_can_be_given_back() {
        let mut c = Capacity::new(vec![100]);
        assert_eq!(c.discharge(1, 0, 1), Err(Refused::NotHeld));
        c.charge(1, 0, 10).expect("fits");
        c.charge(2, 0, 10).expect("fits");
        assert_eq!(c.discharge(1, 0, 11), Err(Refused::NotHeld));
        assert_eq!(c.discharge(1, 0, 10), Ok(()));
        assert_eq!(
            c.device(0),
            Use {
                used: 10,
                high_water: 20
            }
        );
    }

    #[test]
    fn the_dead_hold_nothing_and_keep_their_high_water_mark() {
        let mut c = Capacity::new(vec![100]);
        c.charge(0, 0, 70).expect("fits");
        c.discharge(0, 0, 30).expect("held");
        assert_eq!(
            c.release(0),
            [Use {
                used: 40,
                high_water: 70
            }]
        );
        assert_eq!(c.device(0).used, 0);
        assert_eq!(c.client(0, 0), Use::default());
        assert_eq!(c.release(9), [Use::default()]);
    }
}
