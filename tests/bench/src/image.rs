//! Figures of images without an operating system. `cargo lab bench` builds and boots them.

use std::str::FromStr;

use crate::limits::{IMAGE, Limits};
use crate::report::{Measure, Row};

/// What an image takes, and how fast it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    name: String,
    /// Bytes of code and constants, and of data.
    loaded: f64,
    /// Bytes that begin as zeros.
    zeros: f64,
    /// Microseconds from its start to the first data that came over a NIC and were verified.
    start: f64,
}

/// What describes no image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no image: NAME=LOADED,ZEROS,MICROSECONDS")]
pub struct NoImage;

impl FromStr for Image {
    type Err = NoImage;

    fn from_str(text: &str) -> Result<Self, NoImage> {
        let (name, figures) = text.split_once('=').ok_or(NoImage)?;
        let figures: Result<Vec<u32>, _> = figures.split(',').map(str::parse).collect();
        let [loaded, zeros, start] = figures.map_err(|_| NoImage)?[..] else { return Err(NoImage) };
        Ok(Self { name: name.into(), loaded: loaded.into(), zeros: zeros.into(), start: start.into() })
    }
}

type Figure = (&'static str, Measure, fn(&Image) -> f64, Option<Limits>);

const FIGURES: [Figure; 3] = [
    ("text and data", Measure::Kib, |image| image.loaded / 1024.0, Some(IMAGE)),
    ("zeros", Measure::Kib, |image| image.zeros / 1024.0, None),
    ("to verified completion", Measure::Start, |image| image.start / 1000.0, None),
];

/// The rows of images.
pub fn rows(images: &[Image]) -> impl Iterator<Item = Row> + '_ {
    FIGURES.into_iter().flat_map(move |(what, measure, figure, limits)| {
        let row = move |image: &Image| {
            Row::new("image", format!("{} {what}", image.name), measure, (None, figure(image)), limits)
        };
        images.iter().map(row)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    #[test]
    fn an_image_has_a_row_for_each_figure() {
        let images = ["a=1048576,2048,5000", "b=1024,0,1"].map(|text| text.parse().unwrap());
        let rows: Vec<Row> = rows(&images).collect();
        let figures: Vec<_> = rows.iter().map(|row| (row.operation.as_str(), row.ours)).collect();
        let expected = [
            ("a text and data", 1024.0),
            ("b text and data", 1.0),
            ("a zeros", 2.0),
            ("b zeros", 0.0),
            ("a to verified completion", 5.0),
            ("b to verified completion", 0.001),
        ];
        assert_eq!(figures, expected);
        assert_eq!([rows[0].verdict, rows[1].verdict], [Verdict::Short, Verdict::Target]);
        for text in ["a", "a=1,2", "a=1,2,3,4", "a=1,2,x"] {
            assert_eq!(text.parse::<Image>(), Err(NoImage), "{text}");
        }
    }
}
