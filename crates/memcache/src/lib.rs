//! A memcached client that shares its keys with OpenStack's proxies.
