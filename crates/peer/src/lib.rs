//! The backend language: requests to storage services, by local call or pooled HTTP.
