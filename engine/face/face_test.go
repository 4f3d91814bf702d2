package face

import (
	"testing"
	"time"

	"swarmdeck/expect"
)

type part struct {
	Name string `json:"name"`
}

type row struct {
	part
	ID    string            `json:"id"`
	Count int               `json:"count"`
	Share *float64          `json:"share,omitempty"`
	Cost  float64           `json:"cost"`
	Made  time.Time         `json:"made_at"`
	Took  int64             `json:"took_ms"`
	Words []string          `json:"words"`
	Of    map[string]string `json:"of"`
	Parts []part            `json:"parts"`
	Deep  *row              `json:"deep"`
	On    bool              `json:"on"`
	Go    string            `json:"-"`
}

func TestAWordSaysHowAMemberIsWritten(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	none, at := 0.0, At{Now: now}
	full := row{
		ID: "r1", Count: 3, Share: &none, Cost: 1.5, Made: now.Add(-3 * time.Hour), Took: 1250, Words: []string{"a b", "c"},
		Of: map[string]string{"b": "2", "a": "1"}, Parts: make([]part, 2), Deep: &row{ID: "below"}, On: true, Go: "plain",
	}
	for word, want := range map[string][2]string{ // of a full row and of an empty one
		"X:id": {"r1", ""}, "X:count": {"3", ""}, "X:share": {"0.00", ""}, "X:cost,usd": {"$1.50", ""},
		"X:made_at": {"2026-03-01T09:00:00Z", ""}, "X:made_at,age": {"3h", ""}, "X:took_ms,ms": {"1.2s", ""}, "X:count,s": {"3s", ""},
		"X:words": {"a b,c", ""}, "X:words,argv": {"'a b' c", ""}, "X:words,len": {"2", ""}, "X:of": {"a=1 b=2", ""}, "X:parts,len": {"2", ""},
		"X:deep.id": {"below", ""}, "X:deep.deep.id": {"", ""}, "X:on": {"yes", ""}, "X:Go": {"plain", ""}, "X_Y,right,9,exact": {"cell r1", "cell "},
	} {
		f := Of[row]{Columns: word, Cells: Cells[row]{"X_Y": func(v *row, _ At) string { return "cell " + v.ID }}}.Face()
		col := f.Columns(false)[0]
		for i, v := range []*row{&full, {}} {
			got := col.Text(v, at)
			expect.True(t, got == want[i], "%s of %+v: %q, want %q", word, v, got, want[i])
		}
		numbers := word == "X:count" || word == "X:share" || word == "X:cost,usd"
		expect.True(t, (!numbers || col.Right) && (word != "X:id" || !col.Right), "%s: right %t", word, col.Right)
	}
}

func TestAMistakenWordIsNamed(t *testing.T) {
	for word, want := range map[string]string{
		"X:nothing": "face of face.row: face.row has no member nothing", "X:id,loud": `face of face.row: column X: no option is called "loud"`,
		"X": "face of face.row: column X has no cell", "X:id.deeper": "face of face.row: string has no member deeper",
	} {
		func() {
			defer func() {
				got := recover()
				expect.True(t, got == want, "%s: %v, want %s", word, got, want)
			}()
			Of[row]{Columns: word}.Face().Columns(false)
		}()
	}
}

func TestWideColumnsStandBeforeTheLast(t *testing.T) {
	titles := ""
	f := Of[row]{Columns: "ID:id LAST:Go", Wide: "A:count B:on"}.Face()
	for _, col := range f.Columns(true) {
		titles += col.Title + " "
	}
	expect.Is(t, titles, "ID A B LAST ")
}

func TestWhatAChangeCameToIsTold(t *testing.T) {
	f := Of[row]{Noun: "row", ID: "id", Head: "name"}.Face()
	expect.Is(t, f.Says(&row{ID: "r1", part: part{"night"}}, "made", "row make"), "made row r1: night")
	got := f.Count(3, "made") + ", " + f.Count(1, "made")
	expect.True(t, got == "made 3 rows, made 1 row", "%v", got)
	says := Of[row]{ID: "id", Says: func(v *row, told, op string) string { return told + " by " + op }}.Face()
	expect.Is(t, says.Says(&row{ID: "r1"}, "made", "row make"), "made r1 by row make")
}
