/// Things kept.
abstract interface class Store<T> {
  factory Store.open(String path) = _Files;
  const Store();
  static const int limit = 3;
  T? get first;
  bool operator ==(Object other) => identical(this, other);
  Future<void> put(T one, {bool sure = false}) async {
    void inner() {}
  }
}

extension type Id(int value) implements int {
  bool get isOdd => value.isOdd;
}

mixin Named on Store {}

extension Twice on int {
  int twice() => this * 2;
}

enum Color { red, green }

typedef Hook = void Function(int);

const answer = 42;

int main(List<String> args) => 0;
