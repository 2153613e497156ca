//! Latency plots: microseconds over quantiles, with the far end of the curve spread out.

use plotters::prelude::*;

use crate::error::{BenchError, Result};

const WIDTH: u32 = 900;
const HEIGHT: u32 = 520;

/// A named curve of quantiles and microseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// The name in the legend.
    pub name: String,
    /// Quantile, microseconds; both rise.
    pub points: Vec<(f64, f64)>,
}

/// How far a quantile stands from the left: each step of 1 is one more nine.
fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).max(1e-9).log10()
}

/// The label of a place on that axis.
fn nines_label(nines: f64) -> String {
    match nines.round() as i32 {
        ..=0 => "0 %".to_owned(),
        1 => "90 %".to_owned(),
        2 => "99 %".to_owned(),
        more => format!("99.{} %", "9".repeat(more as usize - 2)),
    }
}

/// The bounds of the drawing: nines to the right, lowest and highest latency.
fn bounds(curves: &[Curve]) -> (f64, f64, f64) {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let right = points().map(|point| nines(point.0)).fold(1.0, f64::max);
    let low = points().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let high = points().map(|point| point.1).fold(1.0, f64::max);
    (right.ceil(), low.clamp(0.1, high) * 0.8, high * 1.25)
}

/// Draws the curves as an SVG document.
pub fn svg(title: &str, curves: &[Curve]) -> Result<String> {
    let mut document = String::new();
    draw(title, curves, &mut document).map_err(BenchError::Plot)?;
    Ok(document)
}

fn draw(title: &str, curves: &[Curve], document: &mut String) -> std::result::Result<(), String> {
    fn told<E: std::fmt::Display>(error: E) -> String {
        error.to_string()
    }
    let (right, low, high) = bounds(curves);
    let area = SVGBackend::with_string(document, (WIDTH, HEIGHT)).into_drawing_area();
    area.fill(&WHITE).map_err(told)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(16)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..right, (low..high).log_scale())
        .map_err(told)?;
    chart
        .configure_mesh()
        .x_labels(right as usize + 1)
        .x_label_formatter(&|x| nines_label(*x))
        .x_desc("of requests answered within")
        .y_desc("microseconds")
        .light_line_style(RGBColor(235, 235, 235))
        .draw()
        .map_err(told)?;
    for (index, curve) in curves.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        let points = curve.points.iter().map(|point| (nines(point.0), point.1));
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))
            .map_err(told)?
            .label(curve.name.as_str())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()
        .map_err(told)?;
    area.present().map_err(told)
}

/// A page with a text table and a plot.
pub fn html(title: &str, text: &str, svg: &str) -> String {
    let escape = |text: &str| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
    };
    let (title, text) = (escape(title), escape(text));
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         </head>\n<body><h1>{title}</h1>\n<pre>{text}</pre>\n{svg}\n</body></html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve() -> Curve {
        Curve {
            name: "send".to_owned(),
            points: vec![(0.0, 90.0), (0.5, 120.0), (0.9, 150.0), (0.999, 900.0)],
        }
    }

    #[test]
    fn each_nine_takes_the_same_room() {
        assert_eq!(nines(0.0), 0.0);
        assert!((nines(0.99) - 2.0).abs() < 1e-9);
        assert_eq!(nines(1.0), 9.0);
        assert_eq!(nines_label(0.0), "0 %");
        assert_eq!(nines_label(2.0), "99 %");
        assert_eq!(nines_label(4.0), "99.99 %");
    }

    #[test]
    fn the_drawing_is_an_svg_with_title_and_names() {
        let document = svg("one producer", &[curve()]).expect("it can be drawn");
        assert!(document.starts_with("<svg"));
        assert!(document.trim_end().ends_with("</svg>"));
        for part in ["one producer", "send", "99 %", "polyline", "microseconds"] {
            assert!(document.contains(part), "{part} is missing");
        }
    }

    #[test]
    fn nothing_measured_is_still_a_drawing() {
        let empty = Curve {
            points: Vec::new(),
            ..curve()
        };
        assert!(svg("nothing", &[empty]).is_ok());
        assert!(svg("nothing", &[]).is_ok());
    }

    #[test]
    fn the_page_escapes_its_text() {
        let page = html("a < b", "<b>", "<svg></svg>");
        assert!(page.contains("a &lt; b") && page.contains("&lt;b&gt;"));
        assert!(page.contains("<svg></svg>"));
    }
}
