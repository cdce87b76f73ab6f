//! The journey of a client's request: accept, recognise, authorise, fan out, reply.
