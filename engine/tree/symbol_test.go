package tree_test

import (
	"slices"
	"testing"

	"swarmdeck/engine/tree"
	"swarmdeck/expect"
)

func TestAChangeIsFoundInItsSymbol(t *testing.T) {
	for _, c := range []struct {
		name, file, lines string
		want              []string
	}{
		{"a body", "a.go", " package a\n \n func Foo() {\n-\tx := 1\n+\tx := 2\n }\n", []string{"func Foo"}},
		{"a signature after another function", "a.go", " func Foo() {\n }\n \n-func Bar() {\n+func Bar(n int) {\n }\n", []string{"func Bar"}},
		{"a method of Go", "a.go", " func (s *Trees[T]) note(a int) {\n+\tx()\n }\n", []string{"func Trees.note"}},
		{"what is in none", "a.go", " package a\n+import \"fmt\"\n \n func Foo() {\n }\n+var x = 1\n", []string{"", "var x"}},
		{"the end of a function", "a.go", " func Foo() {\n+\t}\n+}\n", []string{"func Foo"}},
		{"a label at the margin", "a.go", " func Foo() {\n out:\n+\tx()\n }\n", []string{"func Foo"}},
		{"an inner function", "a.py", " def foo():\n     def bar():\n+        pass\n+    return bar\n", []string{"def foo"}},
		{"two methods of one name", "a.py", " class A:\n     def go(self):\n+        pass\n \n class B:\n     def go(self):\n+        pass\n+    x = 1\n", []string{"def A.go", "def B.go", "class B"}},
		{"after a function of Python", "a.py", " def foo():\n     pass\n \n+foo()\n", []string{""}},
		{"C", "a.c", " static int\n *foo(int a,\n     int b)\n {\n #ifdef X\n+    a = b;\n #endif\n }\n \n void bar(void) {\n     if (x) {\n-        y();\n     }\n }\n", []string{"foo()", "bar()"}},
		{"Java", "A.java", " public class A<T> {\n     public int go(int n) {\n+        return n;\n     }\n }\n", []string{"A.go()"}},
		{"TypeScript", "a.ts", " export default class A {\n   async go(n: number): Promise<void> {\n+    if (n) {\n+    }\n   }\n }\n export const f = (a) => {\n+  g(a)\n }\n", []string{"A.go()", "const f"}},
		{"Rust", "a.rs", " impl<T> Foo {\n     pub(crate) fn go(&self) {\n+        x();\n     }\n }\n", []string{"fn Foo.go"}},
		{"Ruby", "a.rb", " class A\n   def go\n+    x\n   end\n end\n", []string{"def A.go"}},
		{"a shell", "a.sh", " greet() {\n+    echo\n }\n+echo\n", []string{"greet()", ""}},
		{"no language that is known", "a.txt", " class of its own\n+  x\n", nil},
	} {
		patch := "diff --git a/" + c.file + " b/" + c.file + "\nindex 1..2 100644\n--- a/" + c.file + "\n+++ b/" + c.file + "\n@@ -1,9 +1,9 @@\n" + c.lines
		expect.Same(t, tree.Symbols([]byte(patch))[c.file], c.want, c.name)
	}
}

func TestADeletedFileIsFoundByItsOldName(t *testing.T) {
	got := tree.Symbols([]byte("diff --git a/a.go b/a.go\ndeleted file mode 100644\n--- a/a.go\n+++ /dev/null\n@@ -1 +0,0 @@\n-func Foo() {}\ndiff --git a/b.go b/b.go\n--- a/b.go\n+++ b/b.go\n@@ -1 +1 @@\n-var a = 1\n+var a = 2\n"))
	expect.True(t, len(got) == 2 && slices.Equal(got["a.go"], []string{"func Foo"}) && slices.Equal(got["b.go"], []string{"var a"}), "%q", got)
}

func FuzzSymbols(f *testing.F) {
	f.Add([]byte("diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n func (s *T) a() {\n-\tb\n+\tc\n"))
	f.Add([]byte("diff --git a/a.c b/a.c\n--- a/a.c\n+++ b/a.c\n@@ -1 +1 @@\n+int a(b) {\n-}\n@@ \n"))
	f.Fuzz(func(t *testing.T, patch []byte) {
		for file, all := range tree.Symbols(patch) {
			for i, s := range all {
				expect.True(t, len(s) <= 80 && !slices.Contains(all[:i], s), "%s: %q", file, s)
			}
		}
	})
}
