//! Linear least squares with confidence bands and leave-one-out errors.
//!
//! Always holds: columns that do not tell measurements apart are refused, never divided by.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A column whose part beyond the others is smaller than this share of it is one of their sums.
const COLLINEAR: f64 = 1e-9;

/// A fitted sum of columns.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearFit {
    /// One for each column.
    pub coefficients: Vec<f64>,
    /// Of a residual, in units of the target.
    pub deviation: f64,
    /// Measurements less coefficients.
    pub freedom: usize,
    /// The inverse of the normal matrix.
    inverse: Vec<Vec<f64>>,
}

/// Fits targets by sums of columns; nothing where they are too few or one column is a sum of others.
pub fn fit(rows: &[Vec<f64>], targets: &[f64]) -> Option<LinearFit> {
    let columns = rows.first()?.len();
    let freedom = rows.len().checked_sub(columns).filter(|freedom| *freedom > 0)?;
    let product = |one: usize, other: usize| rows.iter().map(|row| row[one] * row[other]).sum::<f64>();
    let normal: Vec<Vec<f64>> = (0..columns)
        .map(|one| (0..columns).map(|other| product(one, other)).collect())
        .collect();
    let inverse = inverse(normal)?;
    let right: Vec<f64> = (0..columns)
        .map(|at| rows.iter().zip(targets).map(|(row, target)| row[at] * target).sum())
        .collect();
    let coefficients: Vec<f64> = inverse.iter().map(|row| dot(row, &right)).collect();
    let residual = |(row, target): (&Vec<f64>, &f64)| (target - dot(row, &coefficients)).powi(2);
    let squares: f64 = rows.iter().zip(targets).map(residual).sum();
    Some(LinearFit {
        coefficients,
        deviation: (squares / freedom as f64).sqrt(),
        freedom,
        inverse,
    })
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Of a symmetric matrix, by Gauss and Jordan.
pub(super) fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    let scale: Vec<f64> = (0..size).map(|at| matrix[at][at]).collect();
    let mut inverse: Vec<Vec<f64>> = (0..size)
        .map(|row| (0..size).map(|column| f64::from(u8::from(row == column))).collect())
        .collect();
    for at in 0..size {
        let pivot = matrix[at][at];
        if !pivot.is_finite() || pivot <= COLLINEAR * scale[at] || pivot <= 0.0 {
            return None;
        }
        for column in 0..size {
            matrix[at][column] /= pivot;
            inverse[at][column] /= pivot;
        }
        for row in (0..size).filter(|row| *row != at) {
            let factor = matrix[row][at];
            for column in 0..size {
                matrix[row][column] -= factor * matrix[at][column];
                inverse[row][column] -= factor * inverse[at][column];
            }
        }
    }
    Some(inverse)
}

impl LinearFit {
    /// The sum of a row.
    pub fn at(&self, row: &[f64]) -> f64 {
        dot(row, &self.coefficients)
    }

    /// How much a row decides over its own fit.
    pub fn leverage(&self, row: &[f64]) -> f64 {
        let image: Vec<f64> = self.inverse.iter().map(|line| dot(line, row)).collect();
        dot(row, &image)
    }

    /// Half of the band in which one more measurement of a row lies with 95 %, if the form of the sum is right.
    pub fn half_band(&self, row: &[f64]) -> f64 {
        student(self.freedom) * self.deviation * (1.0 + self.leverage(row)).sqrt()
    }

    /// What the fit would say of a measurement that it had not seen.
    pub fn without(&self, row: &[f64], target: f64) -> f64 {
        // The usual identity: the residual of a fit without a row is its residual over one less its leverage.
        let left = (1.0 - self.leverage(row)).max(1e-9);
        target - (target - self.at(row)) / left
    }
}

/// The quantile of Student's distribution for a band of 95 %.
pub fn student(freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, freedom.max(1) as f64).map_or(f64::INFINITY, |law| law.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::{fit, student};

    #[test]
    fn a_line_is_found_with_its_band() {
        // y = 3 + 2 x with residuals +1, -1, -1, +1: slope and residuals do not see each other.
        let rows: Vec<Vec<f64>> = [0.0, 1.0, 2.0, 3.0].iter().map(|x| vec![1.0, *x]).collect();
        let targets = [4.0, 4.0, 6.0, 10.0];
        let found = fit(&rows, &targets).unwrap();
        assert!((found.coefficients[0] - 3.0).abs() < 1e-9 && (found.coefficients[1] - 2.0).abs() < 1e-9);
        assert!((found.deviation - 2f64.sqrt()).abs() < 1e-9);
        // Student's table: 4.303 for two degrees of freedom; leverage of the middle is 1/4.
        assert!((student(2) - 4.303).abs() < 1e-3 && (student(10) - 2.228).abs() < 1e-3);
        let half = found.half_band(&[1.0, 1.5]);
        assert!((half - 4.303 * (2.0 * 1.25f64).sqrt()).abs() < 1e-2, "{half}");
    }

    #[test]
    fn leaving_one_out_is_what_fitting_without_it_says() {
        let rows: Vec<Vec<f64>> = [1.0, 2.0, 3.0, 5.0, 8.0].iter().map(|x| vec![1.0, *x]).collect();
        let targets = [2.0, 2.5, 4.1, 5.0, 9.3];
        let whole = fit(&rows, &targets).unwrap();
        for left_out in 0..rows.len() {
            let keep = |at: &usize| *at != left_out;
            let some: Vec<Vec<f64>> = (0..5).filter(keep).map(|at| rows[at].clone()).collect();
            let others: Vec<f64> = (0..5).filter(keep).map(|at| targets[at]).collect();
            let predicted = fit(&some, &others).unwrap().at(&rows[left_out]);
            assert!((predicted - whole.without(&rows[left_out], targets[left_out])).abs() < 1e-9);
        }
    }

    #[test]
    fn what_cannot_be_distinguished_is_refused() {
        let twice: Vec<Vec<f64>> = [1.0, 2.0, 3.0, 4.0].iter().map(|x| vec![*x, 2.0 * x]).collect();
        assert_eq!(fit(&twice, &[1.0, 2.0, 3.0, 4.0]), None);
        assert_eq!(fit(&twice[..2], &[1.0, 2.0]), None);
        assert_eq!(fit(&[], &[]), None);
    }
}
