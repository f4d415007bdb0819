//! What every hooked call goes through: it loads the driver, keeps re-entry out, catches panics and passes the call on where
//! the hook does not decide. Hooks decide, and nothing else.
//!
//! Next: `attach.rs`, where a hook's books come from, and `hooks/memory.rs`, the first hook of the walk.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::panic::{AssertUnwindSafe, catch_unwind};

use driver::table::{RowId, SymbolId};
use driver::{CuResult, CudaError, Driver, StreamApi};
use ledger::ring::Kind;

use crate::books::Books;
use crate::{attach, lock, real};

/// A hook's answer: `Ok` when the call was passed on and succeeded, else how it ended.
pub type Verdict = Result<(), Otherwise>;

/// Why a hook's answer is not success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// The hook has no say: the driver answers.
    Forward,
    /// This error, the driver's or ours.
    Fail(CudaError),
}

impl From<CudaError> for Otherwise {
    fn from(error: CudaError) -> Self {
        Otherwise::Fail(error)
    }
}

/// One call of a hooked function.
pub struct Call<'a> {
    /// The real driver, for questions of our own.
    pub driver: &'a Driver,
    /// The function called.
    pub row: RowId,
    /// Whose default stream the NULL handle means.
    pub stream_api: StreamApi,
    /// `None`: this process's, which attaches for them if need be. Tests have their own.
    books: Option<&'a Books>,
    pass: &'a dyn Fn(&Driver) -> CuResult,
    passed: Cell<Option<CuResult>>,
    /// Bytes the program asked for, for what is told of a refusal.
    asked: Cell<u64>,
}

impl<'a> Call<'a> {
    pub fn new(
        driver: &'a Driver,
        (row, stream_api): (RowId, StreamApi),
        books: Option<&'a Books>,
        pass: &'a dyn Fn(&Driver) -> CuResult,
    ) -> Self {
        Call {
            driver,
            row,
            stream_api,
            books,
            pass,
            passed: Cell::new(None),
            asked: Cell::new(0),
        }
    }

    /// Makes the program's call as the program made it. No lock may be held. Again only after it was refused for want of memory.
    pub fn pass(&self) -> CuResult {
        lock::none_held();
        let result = self.watched();
        self.passed.set(Some(result));
        result
    }

    #[inline]
    fn watched(&self) -> CuResult {
        let result = (self.pass)(self.driver);
        if let Err(error) = result
            && error.stays()
        {
            self.context_is_lost();
        }
        result
    }

    /// The current context has an error that stays: nothing of it is handed out again.
    #[cold]
    fn context_is_lost(&self) {
        if let Ok(books) = self.books_if_attached()
            && let Some(context) = books.current(self)
        {
            let owner = books.contexts.lock().find(context).map(|here| here.owner);
            books.recycler.give_up(owner.unwrap_or(context as usize));
        }
    }

    /// Memory was missing for what nothing is charged for: what the recycler keeps on the device goes back, and the call is made
    /// again.
    #[cold]
    fn once_more(&self) -> CuResult {
        let more = || -> Option<u64> {
            let books = self.books_if_attached().ok()?;
            let current = books.current(self)?;
            let here = books.contexts.lock().find(current)?;
            Some(books.give_back_idle(self, here.account, u64::MAX))
        };
        match more() {
            Some(given) if given > 0 => self.watched(),
            _ => Err(CudaError::OUT_OF_MEMORY),
        }
    }

    /// Remembers what the program asked for, in bytes: what it costs may be more.
    pub fn asks(&self, bytes: u64) {
        self.asked.set(bytes);
    }

    /// What the program asked for; `otherwise` where it named no size.
    pub fn asked(&self, otherwise: u64) -> u64 {
        match self.asked.get() {
            0 => otherwise,
            asked => asked,
        }
    }

    /// What this process is charged to; attaches on the first call that asks.
    ///
    /// # Errors
    /// [`Otherwise::Forward`] where nothing is capped, `CUDA_ERROR_SYSTEM_NOT_READY` where the node refused the process.
    pub fn books(&self) -> Result<&'a Books, Otherwise> {
        match self.books {
            Some(books) => Ok(books),
            None => attach::books(self.driver),
        }
    }

    /// As [`Call::books`], for functions that are no reason to attach.
    ///
    /// # Errors
    /// [`Otherwise::Forward`] while this process is not attached.
    pub fn books_if_attached(&self) -> Result<&'a Books, Otherwise> {
        match self.books {
            Some(books) => Ok(books),
            None => attach::attached().ok_or(Otherwise::Forward),
        }
    }

    /// Runs the hook: forwards where it says so, and where it panicked before the call was made.
    pub fn run(&self, hook: impl FnOnce(&Call<'a>) -> Verdict) -> CuResult {
        match catch_unwind(AssertUnwindSafe(|| hook(self))) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Otherwise::Fail(error))) => Err(error),
            Ok(Err(Otherwise::Forward)) => match self.watched() {
                Err(CudaError::OUT_OF_MEMORY) => self.once_more(),
                result => result,
            },
            Err(_) => {
                self.report_fault();
                self.passed.get().unwrap_or_else(|| (self.pass)(self.driver))
            }
        }
    }

    #[cold]
    fn report_fault(&self) {
        let report = || {
            if let Some(account) = self
                .books_if_attached()
                .ok()
                .and_then(|books| books.any_account())
            {
                account.post(self.row, Kind::Fault, 0, u64::from(FAULT.load(Relaxed)));
            }
        };
        // A second panic while reporting the first is not worth a third attempt.
        let _ = catch_unwind(AssertUnwindSafe(report));
    }
}

thread_local! {
    /// Set while this thread is inside a hooked call: what the driver then calls itself is not the program's.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The line of the last panic, for its event.
static FAULT: AtomicU32 = AtomicU32::new(0);

/// Answers the call of a hooked symbol.
pub fn enter(
    symbol: SymbolId,
    pass: &dyn Fn(&Driver) -> CuResult,
    hook: impl FnOnce(&Call<'_>) -> Verdict,
) -> CuResult {
    silence();
    let Some(driver) = real::driver() else {
        return Err(CudaError::STUB_LIBRARY);
    };
    if INSIDE.replace(true) {
        return pass(driver);
    }
    let result = Call::new(driver, (symbol.row(), symbol.stream_api()), None, pass).run(hook);
    INSIDE.set(false);
    result
}

/// Panics print by default. The hook replaced is that of the standard library inside this object, not the program's.
fn silence() {
    static SILENCED: AtomicBool = AtomicBool::new(false);
    if cfg!(test) || SILENCED.load(Relaxed) || SILENCED.swap(true, Relaxed) {
        return;
    }
    std::panic::set_hook(Box::new(|panic| {
        FAULT.store(panic.location().map_or(0, |location| location.line()), Relaxed);
    }));
}
