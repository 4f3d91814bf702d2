// Package terminal keeps interactive programs as agents: a coding agent's own
// screen, a shell, a REPL. Each has a terminal in its cell. What the program
// writes goes into an emulator and no further; what is to be seen is the
// emulator's picture.
//
// A task's text is pasted into the program and sent with enter. Whether the
// program works or waits is told by, the surest first: what its own hooks say
// (OSC 777;swarmdeck;WORD), a progress that it shows (OSC 9;4), a shell's marks
// of its prompt (OSC 133), a bell or a notification, and its screen, which stands
// still with the cursor at a prompt. A task is over when the program waits again
// or exits.
//
// Like every run, the program ends with its engine.
package terminal
