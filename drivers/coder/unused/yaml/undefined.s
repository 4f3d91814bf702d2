// A file of assembly lets Go declare functions without a body.
