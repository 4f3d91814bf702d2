package wire

import "github.com/hashicorp/yamux"

// Config is that of the multiplexed connection, at both ends: without a log, and without
// keep-alives, as there are beats.
func Config() *yamux.Config {
	c := yamux.DefaultConfig()
	c.EnableKeepAlive = false
	c.LogOutput, c.Logger = nil, silent{}
	return c
}

type silent struct{}

func (silent) Print(...any)          {}
func (silent) Printf(string, ...any) {}
func (silent) Println(...any)        {}
