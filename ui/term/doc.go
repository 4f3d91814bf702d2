// Package term is what the cockpit knows about terminals: which text may be
// printed, how many cells it takes, and what the terminal at hand can do.
//
// Everything an agent, a file or the network wrote goes through this package
// before it reaches a screen. It promises that what it returns holds no
// control character, no escape sequence, no bidirectional control and nothing
// invisible, and that terminals which count grapheme clusters and terminals
// which count code points (wcwidth) agree on its width, also after it was
// joined to other text from this package.
package term
