protocol P { func a<T>(_ x: T) -> String; static func == (l: Self, r: Self) -> Bool }
extension Foo: Bar where T: X { func b() throws -> [Int] {} }
func + (a: Int, b: Int) -> Int { 1 }
infix operator <>
func <> (a: Int, b: Int) -> Foo { 1 }
actor A { init?(x: Int) {} ; subscript(i: Int) -> Int { 1 } ; indirect enum E { case a(Int), b } }
