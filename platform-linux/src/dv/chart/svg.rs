//! Charts as standalone SVG documents, legible on a light and on a dark ground.

use std::fmt::Write as _;

use super::Bucket;
use crate::latency::Latency;
use crate::units::{bytes, duration};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
/// Room around the plot: left, right, top, bottom.
const ROOM: [f64; 4] = [76.0, 24.0, 60.0, 52.0];

/// Colours of marks, each with enough contrast to white and to black; and of text, which follows the reader's scheme.
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#24292f}.title{font-size:15px;font-weight:600}\
    .grid{stroke:#8b949e;stroke-opacity:.35}.axis{stroke:#57606a}.bar{fill:#3b82c4}.mark{stroke:#c2571a;stroke-dasharray:4 3}\
    .s0{stroke:#3b82c4;fill:#3b82c4}.s1{stroke:#c2571a;fill:#c2571a}.s2{stroke:#2f9153;fill:#2f9153}.line{fill:none;stroke-width:2}\
    .dot{stroke:none}\
    @media(prefers-color-scheme:dark){text{fill:#e6edf3}.axis{stroke:#9da7b3}}";

/// A line of a chart.
pub struct Series {
    pub name: &'static str,
    /// A value for each size, in the order of sizes.
    pub values: Vec<f64>,
}

/// A chart over sizes.
pub struct Lines {
    pub title: String,
    /// What the values are.
    pub unit: &'static str,
    pub sizes: Vec<u32>,
    pub series: Vec<Series>,
}

struct Picture(String);

impl Picture {
    fn new(title: &str) -> Self {
        let title = escaped(title);
        let mut picture = Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             role=\"img\">\n<title>{title}</title>\n<style>{STYLE}</style>\n"
        ));
        picture.text("title", (ROOM[0], 24.0), "start", &title);
        picture
    }

    fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.0,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    /// `text` is escaped.
    fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: &str, text: &str) {
        let _ = writeln!(
            self.0,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    /// Lines and labels of the values from 0 to the top.
    fn levels(&mut self, top: f64, label: impl Fn(f64) -> String) {
        let step = round_step(top / 5.0);
        let mut value = 0.0;
        while value <= top * 1.000_001 {
            let y = level(value, top);
            self.line(if value == 0.0 { "axis" } else { "grid" }, (ROOM[0], y), (WIDTH - ROOM[1], y));
            self.text("", (ROOM[0] - 8.0, y + 4.0), "end", &label(value));
            value += step;
        }
    }

    fn end(mut self) -> String {
        self.0 += "</svg>\n";
        self.0
    }
}

/// The bars of a histogram over a logarithmic axis of time, with its percentiles marked.
pub fn histogram(title: &str, buckets: &[Bucket], latency: &Latency) -> String {
    let mut picture = Picture::new(title);
    let most = buckets.iter().map(|b| b.count).max().unwrap_or(1).max(1) as f64;
    let step = round_step(most / 5.0).max(1.0);
    let top = (most / step).ceil() * step;
    picture.levels(top, |value| format!("{value:.0}"));
    picture.text("", (ROOM[0], 46.0), "start", "messages");
    let (low, high) = match (buckets.first(), buckets.last()) {
        // The last bucket reaches as far as the longest latency: it is drawn as wide as the one before.
        (Some(first), Some(last)) => {
            let ratio = first.to as f64 / first.from as f64;
            (first.from as f64, last.from as f64 * ratio.max(1.001))
        }
        _ => (1.0, 2.0),
    };
    let x = |ns: f64| ROOM[0] + (ns / low).ln() / (high / low).ln() * (WIDTH - ROOM[0] - ROOM[1]);
    let labelled = buckets.len().div_ceil(8).max(1);
    for (i, bucket) in buckets.iter().enumerate() {
        let (from, to) = (x(bucket.from as f64), x((bucket.to as f64).min(high)));
        let y = level(bucket.count as f64, top);
        let range = format!("{} to {}: {}", duration(bucket.from), duration(bucket.to), bucket.count);
        let _ = writeln!(
            picture.0,
            "<rect class=\"bar\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>{range}</title></rect>",
            from + 1.0,
            (to - from - 2.0).max(0.5),
            level(0.0, top) - y
        );
        if i % labelled == 0 {
            picture.text("", (from, HEIGHT - ROOM[3] + 18.0), "middle", &duration(bucket.from));
        }
    }
    let marks = [("p50", latency.p50), ("p99", latency.p99), ("p99.9", latency.p999)];
    for (i, (name, ns)) in marks.into_iter().enumerate() {
        let at = x((ns as f64).clamp(low, high));
        picture.line("mark", (at, ROOM[2]), (at, level(0.0, top)));
        let label = format!("{name} {}", duration(ns));
        // Labels of marks that are close to each other are one below the other, and stay inside the picture.
        let anchor = if at > WIDTH / 2.0 { "end" } else { "start" };
        let beside = if anchor == "end" { at - 4.0 } else { at + 4.0 };
        picture.text("", (beside, ROOM[2] + 12.0 + 15.0 * i as f64), anchor, &label);
    }
    picture.text("", (WIDTH / 2.0, HEIGHT - 10.0), "middle", &escaped(&latency.what()));
    picture.end()
}

/// Lines over a logarithmic axis of sizes.
pub fn lines(chart: &Lines) -> String {
    let mut picture = Picture::new(&chart.title);
    let most = chart.series.iter().flat_map(|s| &s.values).copied().fold(0.0, f64::max);
    let step = round_step(if most > 0.0 { most / 5.0 } else { 1.0 });
    let top = (most / step).ceil().max(1.0) * step;
    let places = if step < 0.1 { 3 } else { usize::from(step < 1.0) };
    picture.levels(top, |value| format!("{value:.places$}"));
    picture.text("", (ROOM[0], 46.0), "start", chart.unit);
    let log = |size: u32| f64::from(size.max(1)).log2();
    let first = chart.sizes.first().map_or(0.0, |size| log(*size));
    let span = chart.sizes.last().map_or(0.0, |size| log(*size) - first);
    let x = |size: u32| {
        let part = if span > 0.0 { (log(size) - first) / span } else { 0.5 };
        ROOM[0] + 12.0 + part * (WIDTH - ROOM[0] - ROOM[1] - 24.0)
    };
    let labelled = chart.sizes.len().div_ceil(8).max(1);
    for size in chart.sizes.iter().step_by(labelled) {
        picture.line("grid", (x(*size), ROOM[2]), (x(*size), HEIGHT - ROOM[3]));
        picture.text("", (x(*size), HEIGHT - ROOM[3] + 18.0), "middle", &bytes(*size));
    }
    for (i, series) in chart.series.iter().enumerate() {
        let points: Vec<_> = chart
            .sizes
            .iter()
            .zip(&series.values)
            .map(|(s, value)| (x(*s), level(*value, top), *s, *value))
            .collect();
        let path: Vec<_> = points.iter().map(|(x, y, ..)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(picture.0, "<polyline class=\"line s{i}\" points=\"{}\"/>", path.join(" "));
        for (x, y, size, value) in points {
            let _ = writeln!(
                picture.0,
                "<circle class=\"dot s{i}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{}: {value:.3} {}</title></circle>",
                bytes(size),
                chart.unit
            );
        }
        if chart.series.len() > 1 {
            let at = WIDTH - ROOM[1] - 90.0 * (chart.series.len() - i) as f64;
            let _ = writeln!(picture.0, "<circle class=\"dot s{i}\" cx=\"{at:.1}\" cy=\"42\" r=\"4\"/>");
            picture.text("", (at + 10.0, 46.0), "start", series.name);
        }
    }
    picture.text("", (WIDTH / 2.0, HEIGHT - 10.0), "middle", "bytes of a message");
    picture.end()
}

/// Height of a value.
fn level(value: f64, top: f64) -> f64 {
    let plot = HEIGHT - ROOM[2] - ROOM[3];
    HEIGHT - ROOM[3] - (value / top.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0) * plot
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.max(1e-9).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|n| n * power)
        .find(|step| *step >= least * 0.999_999)
        .unwrap_or(power)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use directverbs_workload::Op;

    use super::*;
    use crate::chart::buckets;

    /// Every tag that is opened is closed in its turn, and no text holds what would be a tag.
    fn assert_well_formed(svg: &str) {
        let mut open = Vec::new();
        let mut rest = svg;
        while let Some(at) = rest.find('<') {
            assert!(!rest[..at].contains('>'), "{}", &rest[..at]);
            let end = at + rest[at..].find('>').expect("a tag ends");
            let tag = &rest[at + 1..end];
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "{tag}"),
                None if tag.ends_with('/') => {}
                None => open.push(tag.split(' ').next().expect("a name")),
            }
            rest = &rest[end + 1..];
        }
        assert!(open.is_empty() && rest == "\n", "{open:?} {rest:?}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(svg.contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn a_histogram_is_a_well_formed_picture() {
        let mut values = crate::latency::histogram().expect("bounds");
        for ns in (900..5000).step_by(7).chain([40_000, 2_000_000]) {
            crate::latency::record(&mut values, ns);
        }
        let latency = Latency::of(&values, Op::Write, false).expect("values");
        let svg = histogram("a <b> & \"c\"", &buckets(&values), &latency);
        assert_well_formed(&svg);
        assert_eq!(svg.matches("class=\"bar\"").count(), buckets(&values).len());
        assert!(svg.contains("a &lt;b&gt; &amp; &quot;c&quot;") && svg.contains("p99.9"));
        let mut one = crate::latency::histogram().expect("bounds");
        crate::latency::record(&mut one, 1);
        let latency = Latency::of(&one, Op::Read, true).expect("a value");
        assert_well_formed(&histogram("one", &buckets(&one), &latency));
    }

    #[test]
    fn lines_are_a_well_formed_picture() {
        let sizes = vec![1, 64, 4096, 1 << 20];
        let series = |name| Series { name, values: vec![0.01, 0.5, 12.0, 97.3] };
        let chart = Lines {
            title: "bandwidth".into(),
            unit: "Gbit/s",
            sizes,
            series: vec![series("p50"), series("p99")],
        };
        let svg = lines(&chart);
        assert_well_formed(&svg);
        assert_eq!((svg.matches("<polyline").count(), svg.matches("<circle").count()), (2, 10));
        let single = Lines { sizes: vec![64], series: vec![Series { name: "", values: vec![0.0] }], ..chart };
        assert_well_formed(&lines(&single));
    }

    #[test]
    fn steps_are_round() {
        for (least, step) in [(0.3, 0.5), (1.0, 1.0), (1.1, 2.0), (4.9, 5.0), (73.0, 100.0), (0.019, 0.02)] {
            assert!((round_step(least) - step).abs() < 1e-9, "{least}: {}", round_step(least));
        }
    }
}
