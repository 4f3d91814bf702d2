package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
	"swarmdeck/engine/secret"
)

// readLines gives each line, without its end, to each, which writes what is to be read in
// its place; cut are the bytes that a line has beyond the longest.
func readLines(from io.ReadCloser, mask *secret.Mask, longest int, each func(ready *bytes.Buffer, line []byte, cut int)) io.ReadCloser {
	return pipe.Masked(from, mask, func(ready *bytes.Buffer) io.Writer {
		return &pipe.Splitter{Max: longest, Emit: func(line []byte, cut int) { each(ready, line, cut) }}
	})
}

// messages are what a server says, without the secrets that it was given: in the
// stream, and in each message once escapes are read. A line that is no message is
// told and passed over; one that is too long ends the connection.
func messages(mask *secret.Mask, from io.ReadCloser, told func(text string)) io.ReadCloser {
	return readLines(from, mask, maxFrame, func(ready *bytes.Buffer, text []byte, cut int) {
		text = mask.JSON(text)
		if cut > 0 { // so that it is too long for its reader too
			ready.Write(text)
			ready.Write(make([]byte, 1+maxFrame-min(maxFrame, ready.Len())))
			ready.WriteByte('\n')
			return
		}
		all, err := messagesOf(text, 0)
		if err != nil {
			told(pipe.Text(text))
		}
		for _, m := range all {
			ready.Write(m)
			ready.WriteByte('\n')
		}
	})
}

// stream is a client on two streams, a message to a line. A line that is none is
// answered, told, and passed over: it ends nobody's work.
func stream(in io.ReadCloser, out io.WriteCloser, told func(why string)) *mcp.IOTransport {
	to := &lockedWriter{WriteCloser: out}
	from := readLines(in, nil, maxMessage, func(ready *bytes.Buffer, line []byte, cut int) {
		messages, err := messagesOf(line, cut)
		if err != nil {
			told(err.Message)
			_, _ = to.Write(append(core.MustEncode(map[string]any{"jsonrpc": "2.0", "id": nil, "error": err}), '\n'))
		}
		for _, m := range messages {
			ready.Write(m)
			ready.WriteByte('\n')
		}
	})
	return &mcp.IOTransport{Reader: from, Writer: to, MaxLineLength: -1}
}

// messagesOf are the messages of a line: one, or those of a batch, which are
// answered one by one.
func messagesOf(text []byte, cut int) ([]json.RawMessage, *jsonrpc.Error) {
	if cut > 0 {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("a message of %d bytes; at most %d are read", len(text)+cut, maxMessage)}
	}
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return nil, nil
	}
	if !json.Valid(text) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "not JSON; want one JSON-RPC message to a line"}
	}
	batch := []json.RawMessage{text}
	if text[0] == '[' {
		if err := json.Unmarshal(text, &batch); err != nil || len(batch) == 0 {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "an empty batch"}
		}
	}
	for _, m := range batch {
		if _, err := jsonrpc.DecodeMessage(m); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "no JSON-RPC message: " + line(err.Error(), 200)}
		}
	}
	return batch, nil
}

// lockedWriter keeps lines of several writers apart.
type lockedWriter struct {
	mu sync.Mutex
	io.WriteCloser
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(p)
}
