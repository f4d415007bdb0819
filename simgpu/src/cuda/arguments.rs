//! A kernel of a graph: a launch with its arguments, copied when the node was made.

use super::context::Context;
use super::edge::{element, get as read};
use super::function::{self, Function};
use super::launch::{self, Shape};
use driver::prelude::*;
use std::ptr::null_mut;
use std::sync::Arc;

/// Names in a list of extra settings.
const END: usize = 0;
const BUFFER_POINTER: usize = 1;
const BUFFER_SIZE: usize = 2;

/// How a program gives arguments.
#[derive(Clone, Copy)]
pub enum Given {
    None,
    /// To the function, before the launch, by the oldest interface.
    Beforehand,
    /// As a list of pointers to them.
    List(*mut *mut c_void),
    /// As a list of settings, in which a buffer is named.
    Settings(*mut *mut c_void),
}

impl Given {
    #[inline(always)]
    pub fn now(list: *mut *mut c_void, settings: *mut *mut c_void) -> Given {
        match (list.is_null(), settings.is_null()) {
            (false, _) => Given::List(list),
            (true, false) => Given::Settings(settings),
            (true, true) => Given::None,
        }
    }

    /// The list of pointers, or null.
    #[inline(always)]
    pub fn list(self) -> *mut *mut c_void {
        match self {
            Given::List(list) => list,
            _ => null_mut(),
        }
    }

    #[inline(always)]
    pub fn is_some(self) -> bool {
        !matches!(self, Given::None)
    }
}

/// The arguments of a node, and the list of pointers to them that a program may ask for.
#[derive(Default)]
pub struct Arguments {
    /// What the lists point into.
    _bytes: Vec<Box<[u8]>>,
    _size: Box<usize>,
    list: Vec<usize>,
    settings: Vec<usize>,
}

impl Arguments {
    fn copied(function: &Function, given: Given) -> Result<Arguments, CudaError> {
        match given {
            Given::None | Given::Beforehand => Ok(Arguments::default()),
            Given::List(list) => Arguments::of_list(function, list),
            Given::Settings(settings) => Arguments::of_settings(settings),
        }
    }

    /// Sizes are the kernel's; nothing is copied where its image does not tell them.
    fn of_list(function: &Function, list: *mut *mut c_void) -> Result<Arguments, CudaError> {
        let sizes = function.kernel().info.parameters.iter().flatten();
        let mut bytes: Vec<Box<[u8]>> = Vec::new();
        for (at, (_, size)) in sizes.enumerate() {
            let from = element(list, at)?;
            bytes.push(Box::from(super::edge::bytes(from, *size as usize)?));
        }
        let list = bytes.iter().map(|argument| argument.as_ptr() as usize);
        Ok(Arguments {
            list: list.collect(),
            _bytes: bytes,
            ..Arguments::default()
        })
    }

    fn of_settings(settings: *mut *mut c_void) -> Result<Arguments, CudaError> {
        const MOST: usize = 16;
        let (mut buffer, mut size) = (null_mut(), 0);
        for at in (0..MOST).step_by(2) {
            match element(settings, at)? as usize {
                END => break,
                BUFFER_POINTER => buffer = element(settings, at + 1)?,
                BUFFER_SIZE => size = read(element(settings, at + 1)?.cast::<usize>())?,
                _ => return Err(CudaError::INVALID_VALUE),
            }
        }
        let bytes: Box<[u8]> = Box::from(super::edge::bytes(buffer, size)?);
        let size = Box::new(size);
        let settings = vec![
            BUFFER_POINTER,
            bytes.as_ptr() as usize,
            BUFFER_SIZE,
            std::ptr::from_ref(&*size) as usize,
            END,
        ];
        Ok(Arguments {
            _bytes: vec![bytes],
            _size: size,
            list: Vec::new(),
            settings,
        })
    }

    /// The list and the settings, of which at most one is not null.
    pub fn pointers(&self) -> (*mut *mut c_void, *mut *mut c_void) {
        let of = |list: &Vec<usize>| {
            if list.is_empty() {
                null_mut()
            } else {
                list.as_ptr().cast_mut().cast()
            }
        };
        (of(&self.list), of(&self.settings))
    }
}

/// A kernel node.
#[derive(Clone)]
pub struct Kernel {
    /// The function's handle.
    pub function: usize,
    pub context: &'static Context,
    pub shape: Shape,
    pub arguments: Arc<Arguments>,
}

impl Kernel {
    /// By the parameters of a node.
    pub fn of(
        context: &'static Context,
        f: CUfunction,
        shape: Shape,
        list: *mut *mut c_void,
        settings: *mut *mut c_void,
    ) -> Result<Kernel, CudaError> {
        if !list.is_null() && !settings.is_null() {
            return Err(CudaError::INVALID_VALUE);
        }
        let function = function::get(f)?;
        let given = Given::now(list, settings);
        launch::check(context, function, &shape, given.is_some())?;
        Kernel::new(context, f, function, shape, given)
    }

    /// By a launch that was checked.
    pub fn new(
        context: &'static Context,
        f: CUfunction,
        function: &'static Function,
        shape: Shape,
        given: Given,
    ) -> Result<Kernel, CudaError> {
        Ok(Kernel {
            function: f as usize,
            context,
            shape,
            arguments: Arc::new(Arguments::copied(function, given)?),
        })
    }
}
