//! Certificates: that everything a program submitted before it freed a block is complete, whatever the stream, also one that
//! was destroyed since, and whatever the context, for a copy between devices names memory of both. So an event is recorded in
//! *every* context of the process by `cuCtxRecordEvent`. Drivers before 12.5 lack it, and there nothing is recycled: to wait
//! for a context instead spoils a capture that begins meanwhile, and keeping captures off for so long can hang a program.
//!
//! The driver calls made here are the shim's own. They are made with no lock held, not while a context is being ended, and
//! those that a capture would not bear not during one: the gates `Recycler::endings` and in `captures.rs` see to it.
//!
//! Next: `kept.rs`.

use core::ptr::null_mut;

use driver::abi::{CUcontext, CUevent};
use driver::table::SymbolId;
use driver::{CudaError, Driver, StreamApi};

use super::blocks::{Key, Ticket};
use crate::books::Books;
use crate::guard::Call;
use crate::relaxed::relaxed;

/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: u32 = 2;

/// Whether this driver can record an event for a whole context.
pub fn can_record(driver: &Driver) -> bool {
    !driver.address(SymbolId::cuCtxRecordEvent).is_null()
}

/// Makes `context` current for calls of our own, where it is not.
pub fn within<T>(
    driver: &Driver,
    current: Option<CUcontext>,
    context: usize,
    work: impl FnOnce() -> Result<T, CudaError>,
) -> Result<T, CudaError> {
    let context = context as CUcontext;
    if current == Some(context) {
        return work();
    }
    // SAFETY: a context of the program's, which nobody ends meanwhile; what is pushed is popped.
    unsafe {
        driver.cuCtxPushCurrent_v2(StreamApi::Legacy, context)?;
        let done = work();
        let mut popped = null_mut();
        if driver.cuCtxPopCurrent_v2(StreamApi::Legacy, &mut popped).is_err() {
            let mut now = null_mut();
            let before = current.unwrap_or(null_mut());
            let asked = driver.cuCtxGetCurrent(StreamApi::Legacy, &mut now);
            if asked.is_ok() && now != before {
                driver.cuCtxSetCurrent(StreamApi::Legacy, before)?;
            }
        }
        done
    }
}

impl Books {
    /// Lets what can ripen do so, for a block of `key` wanted now: looks at certificates that are due and asks for one where
    /// none is under way.
    pub fn ripen(&self, call: &Call<'_>, key: Key) {
        self.look_at_certificates(call);
        let asks = {
            let blocks = self.recycler.blocks.lock();
            blocks.has_open(key) && blocks.oldest_closed().is_none()
        };
        if asks && self.ask_for_certificate(call) {
            self.look_at_certificates(call);
        }
    }

    /// Makes idle what certificates cover that have come.
    pub fn look_at_certificates(&self, call: &Call<'_>) {
        loop {
            let oldest = self.recycler.blocks.lock().oldest_closed();
            let Some((number, tickets)) = oldest else { return };
            let Some(_held) = self.recycler.captures.hold_off() else {
                return;
            };
            for ticket in tickets {
                // SAFETY: an event of our own.
                match unsafe { call.driver.cuEventQuery(StreamApi::Legacy, ticket.event) } {
                    Ok(()) => {}
                    Err(CudaError::NOT_READY) => return,
                    Err(error) => {
                        self.certificate_failed(ticket.context, error);
                        return self.recycler.blocks.lock().reopen(number);
                    }
                }
            }
            self.recycler.blocks.lock().promote(number);
        }
    }

    /// Records an event in every context and closes what was freed before; false where that was not possible now.
    pub fn ask_for_certificate(&self, call: &Call<'_>) -> bool {
        self.record(call, false).is_some()
    }

    /// As [`Books::ask_for_certificate`], and returns the events, which are the caller's to wait for and to give back, and the
    /// instant.
    fn record(&self, call: &Call<'_>, awaited: bool) -> Option<(u64, Vec<Ticket>)> {
        let _held = self.recycler.captures.hold_off()?;
        let (turn, ended) = {
            let blocks = self.recycler.blocks.lock();
            (blocks.turn(), blocks.ended())
        };
        let owners = self.contexts.lock().owners();
        let current = self.current(call);
        let mut tickets = Vec::with_capacity(owners.len());
        for context in owners {
            match self.record_in(call.driver, current, context) {
                Ok(ticket) => tickets.push(ticket),
                Err(error) => {
                    self.recycler.blocks.lock().add_spares(tickets);
                    self.certificate_failed(context, error);
                    return None;
                }
            }
        }
        let closed = tickets.clone();
        self.recycler.blocks.lock().close(turn, closed, awaited);
        Some((ended, tickets))
    }

    /// Waits until everything submitted so far in `context`, the caller's own, is complete, as the driver does when memory is
    /// freed, and makes idle what that suffices for; false where it was not possible.
    ///
    /// Nobody is kept from anything meanwhile, neither from beginning a capture nor from ending another context: what the wait
    /// is for may depend on that.
    pub fn wait_in(&self, call: &Call<'_>, context: usize) -> bool {
        let recorded = {
            let Some(_inside) = self.recycler.endings.enter() else {
                return false;
            };
            self.record(call, true)
        };
        let Some((ended, tickets)) = recorded else {
            return false;
        };
        let own = tickets.iter().find(|ticket| ticket.context == context);
        let waited = relaxed(call.driver, || match own {
            // SAFETY: an event of our own, which is not recorded again before it is given back.
            Some(own) => unsafe { call.driver.cuEventSynchronize(StreamApi::Legacy, own.event) },
            None => Err(CudaError::INVALID_CONTEXT),
        });
        if let Err(error) = waited {
            self.certificate_failed(context, error);
        }
        if let Some(_inside) = self.recycler.endings.enter() {
            self.look_at_certificates(call);
        }
        self.recycler.blocks.lock().add_spares_of(ended, tickets);
        waited.is_ok()
    }

    fn certificate_failed(&self, context: usize, error: CudaError) {
        if error.stays() {
            self.recycler.give_up(context);
        }
    }

    fn record_in(
        &self,
        driver: &Driver,
        current: Option<CUcontext>,
        context: usize,
    ) -> Result<Ticket, CudaError> {
        let spare = self.recycler.blocks.lock().spare(context);
        let ticket = match spare {
            Some(ticket) => ticket,
            None => {
                let mut event: CUevent = null_mut();
                // SAFETY: the driver writes one handle.
                let make = || unsafe { driver.cuEventCreate(StreamApi::Legacy, &mut event, DISABLE_TIMING) };
                within(driver, current, context, make)?;
                Ticket { context, event }
            }
        };
        // SAFETY: a context of the program's that nobody ends meanwhile, and an event of ours in it.
        let recorded =
            unsafe { driver.cuCtxRecordEvent(StreamApi::Legacy, context as CUcontext, ticket.event) };
        if recorded.is_err() {
            self.recycler.blocks.lock().add_spares(vec![ticket]);
        }
        recorded.map(|()| ticket)
    }
}
