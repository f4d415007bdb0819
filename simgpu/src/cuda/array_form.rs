//! What an array looks like: its elements, its extent, and the memory that takes.
//!
//! The device keeps arrays in tiles: a row of a tile is 64 bytes, eight rows are a unit, and up to sixteen units
//! lie one below the other, as many as the height fills. NVIDIA does not document the arithmetic; this one is that
//! of the open-source drivers, rounded up to 64 KiB. Next file of the walk: `array_memory.rs`.

use driver::CudaError;
use driver::abi::{
    CUDA_ARRAY3D_CUBEMAP, CUDA_ARRAY3D_DEFERRED_MAPPING, CUDA_ARRAY3D_DESCRIPTOR, CUDA_ARRAY3D_LAYERED,
    CUDA_ARRAY3D_SPARSE,
};

/// Bytes of a row of a tile.
const TILE_ROW: u64 = 64;
/// Rows of a unit of a tile.
const UNIT_ROWS: u64 = 8;
/// Units of a tile, at most.
const MOST_UNITS: u64 = 16;
/// Layers a tile of a box is deep, at most.
const MOST_DEEP: u64 = 32;
/// What an array's memory is a multiple of.
pub const ARRAY_UNIT: u64 = 64 << 10;

/// All flags of `cuArray3DCreate`.
const FLAGS: u32 = 0x1ff;

/// An array's extent, in elements. A missing height or depth is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub width: u64,
    pub height: u64,
    pub depth: u64,
    /// Layers lie apart; the depth is then 1.
    pub layers: u64,
    pub element_bytes: u64,
}

/// Bytes of one channel; `None` for the compressed and planar formats, which the stand-in lacks.
fn channel_bytes(format: u32) -> Option<u64> {
    match format {
        0x01 | 0x08 => Some(1),
        0x02 | 0x09 | 0x10 => Some(2),
        0x03 | 0x0a | 0x20 => Some(4),
        _ => None,
    }
}

impl Form {
    /// What a descriptor describes: `INVALID_VALUE` for nonsense, `NOT_SUPPORTED` for a format of another stage.
    pub fn of(descriptor: &CUDA_ARRAY3D_DESCRIPTOR) -> Result<Form, CudaError> {
        let d = descriptor;
        let invalid = Err(CudaError::INVALID_VALUE);
        let channel = channel_bytes(d.Format).ok_or(CudaError::NOT_SUPPORTED)?;
        if !matches!(d.NumChannels, 1 | 2 | 4) || d.Width == 0 || d.Flags & !FLAGS != 0 {
            return invalid;
        }
        let layered = d.Flags & CUDA_ARRAY3D_LAYERED != 0;
        let cube = d.Flags & CUDA_ARRAY3D_CUBEMAP != 0;
        if layered && d.Depth == 0 || !layered && !cube && d.Depth != 0 && d.Height == 0 {
            return invalid;
        }
        if cube
            && (d.Width != d.Height || d.Depth == 0 || !d.Depth.is_multiple_of(6) || !layered && d.Depth != 6)
        {
            return invalid;
        }
        let both = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;
        if d.Flags & both == both {
            return invalid;
        }
        let within = match (d.Height, d.Depth, layered || cube) {
            (0, 0, _) => d.Width <= 131_072,
            (_, 0, _) => d.Width <= 131_072 && d.Height <= 65_536,
            (_, _, true) => d.Width <= 32_768 && d.Height <= 32_768 && d.Depth <= 2_048,
            (_, _, false) => d.Width <= 16_384 && d.Height <= 16_384 && d.Depth <= 16_384,
        };
        if !within {
            return invalid;
        }
        let deep = (d.Depth as u64).max(1);
        let apart = layered || cube;
        Ok(Form {
            width: d.Width as u64,
            height: (d.Height as u64).max(1),
            depth: if apart { 1 } else { deep },
            layers: if apart { deep } else { 1 },
            element_bytes: channel * u64::from(d.NumChannels),
        })
    }

    /// Level `level` of a mipmapped array of this form.
    pub fn level(self, level: u32) -> Form {
        let half = |extent: u64| (extent >> level.min(63)).max(1);
        Form {
            width: half(self.width),
            height: half(self.height),
            depth: half(self.depth),
            ..self
        }
    }

    /// Levels down to a single element.
    pub fn most_levels(self) -> u32 {
        self.width.max(self.height).max(self.depth).ilog2() + 1
    }

    /// Bytes of a row.
    pub fn row_bytes(self) -> u64 {
        self.width * self.element_bytes
    }

    /// Layers of either kind.
    pub fn slices(self) -> u64 {
        self.depth * self.layers
    }

    /// Bytes of the elements alone.
    pub fn linear_bytes(self) -> u64 {
        self.row_bytes() * self.height * self.slices()
    }

    /// Bytes of the device it takes, before they are rounded.
    pub fn tiled_bytes(self) -> u64 {
        let row = self.row_bytes().next_multiple_of(TILE_ROW);
        let units = self
            .height
            .div_ceil(UNIT_ROWS)
            .next_power_of_two()
            .min(MOST_UNITS);
        let rows = self.height.next_multiple_of(UNIT_ROWS * units);
        let deep = self.depth.next_power_of_two().min(MOST_DEEP);
        row * rows * self.depth.next_multiple_of(deep) * self.layers
    }

    /// Width, height and depth of a tile of a sparse array: 64 KiB of elements. `None`: there are none of this form.
    pub fn sparse_tile(self) -> Option<[u32; 3]> {
        let flat = [
            [256, 256, 1],
            [256, 128, 1],
            [128, 128, 1],
            [128, 64, 1],
            [64, 64, 1],
        ];
        let deep = [
            [64, 32, 32],
            [32, 32, 32],
            [32, 32, 16],
            [32, 16, 16],
            [16, 16, 16],
        ];
        let size = self.element_bytes.ilog2() as usize;
        match (self.height, self.depth) {
            (1, 1) => None,
            (_, 1) => flat.get(size).copied(),
            _ => deep.get(size).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor(width: usize, height: usize, depth: usize, flags: u32) -> CUDA_ARRAY3D_DESCRIPTOR {
        CUDA_ARRAY3D_DESCRIPTOR {
            Width: width,
            Height: height,
            Depth: depth,
            Format: 0x20,
            NumChannels: 1,
            Flags: flags,
        }
    }

    #[test]
    fn memory_is_padded_to_tiles_of_what_the_height_fills() {
        let bytes = |w, h, d, flags| {
            Form::of(&descriptor(w, h, d, flags))
                .expect("valid")
                .tiled_bytes()
        };
        assert_eq!(bytes(16, 0, 0, 0), 64 * 8, "one unit");
        assert_eq!(bytes(17, 9, 0, 0), 128 * 16, "two units");
        assert_eq!(bytes(1024, 1024, 0, 0), 4 << 20, "nothing to pad");
        assert_eq!(bytes(1024, 1000, 0, 0), 4 << 20, "rows of 128");
        assert_eq!(bytes(16, 8, 3, 0), 64 * 8 * 4, "a depth of four");
        assert_eq!(bytes(16, 8, 3, CUDA_ARRAY3D_LAYERED), 64 * 8 * 3, "layers apart");
    }

    #[test]
    fn nonsense_is_refused() {
        let refused = [
            descriptor(0, 1, 0, 0),
            descriptor(4, 0, 4, 0),
            descriptor(4, 4, 0, CUDA_ARRAY3D_LAYERED),
            descriptor(4, 5, 6, CUDA_ARRAY3D_CUBEMAP),
            descriptor(4, 4, 7, CUDA_ARRAY3D_CUBEMAP),
            descriptor(4, 4, 0, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING),
            descriptor(4, 4, 0, 0x200),
            descriptor(200_000, 0, 0, 0),
        ];
        for descriptor in refused {
            assert_eq!(Form::of(&descriptor), Err(CudaError::INVALID_VALUE));
        }
        let planar = CUDA_ARRAY3D_DESCRIPTOR {
            Format: 0xb0,
            ..descriptor(4, 4, 0, 0)
        };
        assert_eq!(Form::of(&planar), Err(CudaError::NOT_SUPPORTED));
    }
}
