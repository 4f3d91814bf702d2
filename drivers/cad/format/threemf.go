package format

import (
	"archive/zip"
	"bufio"
	"encoding/xml"
	"fmt"
	"io"

	"swarmdeck/engine/cad/mesh"
)

// The fixed members of a 3MF package (3MF Core Specification 1.3, section 2).
const (
	threemfTypes = `<?xml version="1.0" encoding="UTF-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="model" ContentType="application/vnd.ms-package.3dmanufacturing-3dmodel+xml"/></Types>
`
	threemfRelations = `<?xml version="1.0" encoding="UTF-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Target="/3D/3dmodel.model" Id="rel0" Type="http://schemas.microsoft.com/3dmanufacturing/2013/01/3dmodel"/></Relationships>
`
)

// Write3MF writes parts as named objects of one 3MF package in millimetres, in
// single precision, which is what its readers compute in; the tolerance is in
// its description.
func Write3MF(w io.Writer, parts []Part) error {
	if err := check(parts); err != nil {
		return err
	}
	var surfaces []*mesh.Mesh
	for i, p := range parts {
		own, err := distinct(p.Mesh)
		if err != nil {
			return fmt.Errorf("part %d: %w", i+1, err)
		}
		surfaces = append(surfaces, own...)
	}
	archive := zip.NewWriter(w)
	for _, member := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"[Content_Types].xml", func(w io.Writer) error { _, err := io.WriteString(w, threemfTypes); return err }},
		{"_rels/.rels", func(w io.Writer) error { _, err := io.WriteString(w, threemfRelations); return err }},
		{"3D/3dmodel.model", func(w io.Writer) error { return write3MFModel(w, parts, surfaces) }},
	} {
		file, err := archive.Create(member.name)
		if err == nil {
			err = member.write(file)
		}
		if err != nil {
			return fmt.Errorf("write 3MF member %s: %w", member.name, err)
		}
	}
	return archive.Close()
}

func write3MFModel(w io.Writer, parts []Part, surfaces []*mesh.Mesh) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, `<?xml version="1.0" encoding="UTF-8"?>
<model unit="millimeter" xml:lang="en-US" xmlns="http://schemas.microsoft.com/3dmanufacturing/core/2015/02">
<metadata name="Application">swarmdeck</metadata>
<metadata name="Description">chord tolerance %s mm</metadata>
<resources>
`, decimal(coarsest(parts)))
	for i, p := range parts {
		fmt.Fprintf(out, `<object id="%d" type="model" name="`, i+1)
		if err := xml.EscapeText(out, []byte(p.Name)); err != nil {
			return err
		}
		out.WriteString("\"><mesh><vertices>\n")
		for _, v := range surfaces[i].Vertices {
			fmt.Fprintf(out, "<vertex x=\"%s\" y=\"%s\" z=\"%s\"/>\n", short(v[0]), short(v[1]), short(v[2]))
		}
		out.WriteString("</vertices><triangles>\n")
		for _, t := range surfaces[i].Triangles {
			fmt.Fprintf(out, "<triangle v1=\"%d\" v2=\"%d\" v3=\"%d\"/>\n", t[0], t[1], t[2])
		}
		out.WriteString("</triangles></mesh></object>\n")
	}
	out.WriteString("</resources>\n<build>\n")
	for i := range parts {
		fmt.Fprintf(out, "<item objectid=\"%d\"/>\n", i+1)
	}
	out.WriteString("</build>\n</model>\n")
	return out.Flush()
}
