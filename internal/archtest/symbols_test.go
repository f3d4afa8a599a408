package archtest

import (
	"go/ast"
	"regexp"
)

// symbolPattern finds `pkg/index.Distance` and `pkg/fault.Ledger.Record`.
func symbolPattern() *regexp.Regexp {
	return regexp.MustCompile("`((?:pkg|internal)/[a-z0-9/]+)\\.([A-Z]\\w*(?:\\.[A-Z]\\w*)?)`")
}

// declares reports whether the files declare NAME, or TYPE.METHOD.
func declares(files []source, symbol string) bool {
	for _, s := range files {
		for _, decl := range s.syntax.Decls {
			if declaresIn(decl, symbol) {
				return true
			}
		}
	}
	return false
}

func declaresIn(decl ast.Decl, symbol string) bool {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		return funcName(d) == symbol
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.Name == symbol {
					return true
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.Name == symbol {
						return true
					}
				}
			}
		}
	}
	return false
}

func funcName(d *ast.FuncDecl) string {
	if receiver := receiverName(d); receiver != "" {
		return receiver + "." + d.Name.Name
	}
	return d.Name.Name
}

// receiverName is the name of a method's type, without star and parameters.
func receiverName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	t := d.Recv.List[0].Type
	for {
		switch e := t.(type) {
		case *ast.StarExpr:
			t = e.X
		case *ast.IndexExpr:
			t = e.X
		case *ast.IndexListExpr:
			t = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}
