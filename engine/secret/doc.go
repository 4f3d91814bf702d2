// Package secret keeps values that nobody is shown: credentials that processes
// get in their environment. A record names one by a reference, @NAME; only
// where a process starts is it replaced by the value, and what that process
// prints is masked from then on.
//
// Values lie in the data file encrypted by age, to a key in a file of its own.
// Nothing here gives one out but Resolve. Masking covers a value as it is and
// in common encodings; a program that wants to can always write it in another
// way.
package secret
