package files

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// encodeSeen writes what was seen of a tree's files, but of those that changed
// too shortly before they were read.
func encodeSeen(all []entry, stats []unix.Stat_t, began int64) []byte {
	var b []byte
	for i, e := range all {
		st := &stats[i]
		if e.kind != regular || st.Ctim.Nano() > began-settled || st.Mtim.Nano() > began-settled {
			continue
		}
		for _, n := range []uint64{uint64(st.Dev), st.Ino, uint64(st.Size), uint64(st.Mtim.Nano()), uint64(st.Ctim.Nano()), uint64(len(e.path))} {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		b = append(append(b, e.sum[:]...), e.path...)
	}
	return b
}

func decodeSeen(b []byte) seen {
	const head = 6*8 + 32
	all := seen{}
	for len(b) >= head {
		var n [6]uint64
		for i := range n {
			n[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
		if n[5] > uint64(len(b)-head) {
			return nil
		}
		end := head + int(n[5])
		all[string(b[head:end])] = seenFile{dev: n[0], ino: n[1], size: int64(n[2]), mtim: int64(n[3]), ctim: int64(n[4]), sum: digest(b[48:head])}
		b = b[end:]
	}
	return all
}

// same reports that a file has not changed since it was seen.
func (f seenFile) same(st *unix.Stat_t) bool {
	return f.dev == uint64(st.Dev) && f.ino == st.Ino && f.size == st.Size && f.mtim == st.Mtim.Nano() && f.ctim == st.Ctim.Nano()
}
