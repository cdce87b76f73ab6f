//! One declaration per option: Swift-compatible configuration files become typed settings.
