package obs // want "internal/obs has no package doc"

func Free() {}
