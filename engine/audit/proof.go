package audit

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"swarmdeck/engine/core"
	"swarmdeck/store"
)

// proofLine begins a C2SP tlog-proof.
const proofLine = "c2sp.org/tlog-proof@v1"

// Prove returns a self-contained inclusion proof of an event (C2SP tlog-proof
// text). Its extra data are the event's exact stored bytes, whose RFC 6962
// leaf hash the proof places in the checkpoint.
func (l *Ledger) Prove(ctx context.Context, tenant, id string) ([]byte, error) {
	seq, err := l.local(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	var proof []byte
	err = l.st.View(ctx, tenant, func(tx store.Tx) error {
		data, err := tx.Get(Events, key(seq))
		if err != nil {
			return err
		}
		if seq == 0 || data == nil {
			return core.Missing("event", id)
		}
		head, err := needHead(tx)
		if err != nil {
			return err
		}
		c, err := ParseCheckpoint(head)
		if err != nil && !errors.Is(err, ErrUnsigned) {
			return err
		}
		if seq > c.Size {
			return core.Errorf(core.Internal, "the checkpoint has %d events, %s is not among them", c.Size, id)
		}
		path, err := tlog.ProveRecord(int64(c.Size), int64(seq-1), storedHashes{tx})
		if err != nil {
			return err
		}
		proof = formatProof(seq-1, data, path, head)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("prove %s: %w", id, err)
	}
	return proof, nil
}

func formatProof(index uint64, extra []byte, path tlog.RecordProof, checkpoint []byte) []byte {
	b := append([]byte(proofLine), "\nextra "...)
	b = base64.StdEncoding.AppendEncode(b, extra)
	b = append(b, "\nindex "...)
	b = append(strconv.AppendUint(b, index, 10), '\n')
	for _, h := range path {
		b = append(append(b, h.String()...), '\n')
	}
	return append(append(b, '\n'), checkpoint...)
}

// CheckProof checks a proof made by Prove against a verifier key of the log,
// and returns the event that it proves. It needs nothing else. One that does
// not hold is INVALID_INPUT, and ErrUnsigned when another log signed it.
func CheckProof(proof []byte, verifier string) (Event, error) {
	e, err := checkProof(proof, verifier)
	if err != nil {
		return Event{}, badProof(err)
	}
	return e, nil
}

// CheckProof is CheckProof by the keys of a tenant's log: one has to have signed the
// proof that might when the log had that size. A log without keys is NOT_FOUND.
func (l *Ledger) CheckProof(ctx context.Context, tenant string, proof []byte) (Event, error) {
	var c Checkpoint
	_, _, _, head, err := parseProof(proof)
	if err == nil {
		c, err = l.signedCheckpoint(ctx, tenant, head)
	}
	if err != nil && core.AsError(err).Code == core.NotFound {
		return Event{}, err
	}
	if err != nil {
		return Event{}, badProof(err)
	}
	return CheckProof(proof, c.Signer)
}

func badProof(err error) error {
	invalid := &core.Error{Code: core.InvalidInput} // for its code; err says it all
	return fmt.Errorf("proof: %w%w", err, invalid.With("field", "proof"))
}

func checkProof(proof []byte, verifier string) (Event, error) {
	index, extra, path, head, err := parseProof(proof)
	if err != nil {
		return Event{}, err
	}
	c, err := ParseCheckpoint(head, verifier)
	if err != nil {
		return Event{}, err
	}
	if index >= c.Size {
		return Event{}, fmt.Errorf("index %d is outside the checkpoint's %d events", index, c.Size)
	}
	leaf, _ := leafHash(nil, extra)
	if err := tlog.CheckRecord(path, int64(c.Size), tlog.Hash(c.Root), int64(index), leaf); err != nil {
		return Event{}, fmt.Errorf("the event is not at index %d of the checkpoint: its hashes do not lead to the root", index)
	}
	e, err := decode(extra)
	if err != nil {
		return Event{}, err
	}
	if e.Seq != index+1 || Origin(e.TenantID) != c.Origin {
		return Event{}, fmt.Errorf("the event says seq %d of %s, the proof index %d of %s", e.Seq, core.Clip(e.TenantID), index, core.Clip(c.Origin))
	}
	return e, nil
}

func parseProof(proof []byte) (index uint64, extra []byte, path tlog.RecordProof, checkpoint []byte, err error) {
	if len(proof) > 2*MaxEvent {
		return 0, nil, nil, nil, fmt.Errorf("%d bytes, at most %d are allowed", len(proof), 2*MaxEvent)
	}
	text, checkpoint, found := bytes.Cut(proof, []byte("\n\n"))
	lines := strings.Split(string(text), "\n")
	if !found || lines[0] != proofLine {
		return 0, nil, nil, nil, errors.New("want the line " + proofLine + ", the proof, an empty line and a checkpoint")
	}
	if len(lines) < 3 || !strings.HasPrefix(lines[1], "extra ") || !strings.HasPrefix(lines[2], "index ") {
		return 0, nil, nil, nil, errors.New("want a line extra EVENT, then a line index NUMBER")
	}
	if extra, err = base64.StdEncoding.Strict().DecodeString(lines[1][len("extra "):]); err != nil {
		return 0, nil, nil, nil, fmt.Errorf("extra data: %w", err)
	}
	number := lines[2][len("index "):]
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != number {
		return 0, nil, nil, nil, fmt.Errorf("index %q is not a count", core.Clip(number))
	}
	if len(lines)-3 > 63 {
		return 0, nil, nil, nil, fmt.Errorf("%d hashes, at most 63 are possible", len(lines)-3)
	}
	for _, line := range lines[3:] {
		h, ok := parseHash(line)
		if !ok {
			return 0, nil, nil, nil, fmt.Errorf("hash %q is not the base64 of 32 bytes", core.Clip(line))
		}
		path = append(path, h)
	}
	return uint64(n), extra, path, checkpoint, nil
}
