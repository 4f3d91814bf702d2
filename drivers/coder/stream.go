package coder

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxEvent bounds one event: a workspace with many statuses has some hundred
// kilobytes, a screen of an agent less.
const maxEvent = 8 << 20

var errEventTooLong = fmt.Errorf("an event is longer than %d MiB", maxEvent>>20)

// eventReader reads server-sent events (WHATWG HTML, 9.2).
type eventReader struct{ r *bufio.Reader }

func newEventReader(r io.Reader) *eventReader { return &eventReader{bufio.NewReaderSize(r, 64<<10)} }

// next returns the next event that has a type or data. Comments, ids and
// unknown fields are skipped.
func (e *eventReader) next() (kind string, data []byte, err error) {
	for {
		line, err := e.line()
		if err != nil {
			return "", nil, err
		}
		if len(line) == 0 {
			if kind != "" || data != nil {
				return kind, data, nil
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			kind = string(value[:min(len(value), 64)])
		case "data":
			if len(data)+len(value) > maxEvent {
				return "", nil, errEventTooLong
			}
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, value...)
			if data == nil {
				data = []byte{}
			}
		}
	}
}

// line reads one line without its end; valid until the next call.
func (e *eventReader) line() ([]byte, error) {
	var long []byte
	for {
		part, err := e.r.ReadSlice('\n')
		if len(long)+len(part) > maxEvent {
			return nil, errEventTooLong
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			continue
		}
		if err != nil {
			return nil, err
		}
		if long != nil {
			part = append(long, part...)
		}
		return bytes.TrimRight(part, "\r\n"), nil
	}
}
