package mcp

import (
	"io"
	"testing"

	"swarmdeck/expect"
)

func TestAClientThatLeavesIsNoError(t *testing.T) {
	h := newHouse(t)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	defer inW.Close()
	served := expect.Later(func() error { return h.srv.Stdio(t.Context(), viewer, inR, outW) })
	outR.Close() // it still says something, but hears no answer
	expect.Of(io.WriteString(inW, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"))(t)
	expect.No(t, <-served)
}
