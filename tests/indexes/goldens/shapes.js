'use strict';
// The largest side.
export const MAX_SIDE = 10;
const { join, resolve: toAbsolute } = require('path');
let counter = 0;

/**
 * A shape with sides.
 * @abstract
 */
export default class Shape extends Base {
  static #count = 0;
  name = 'shape';
  onClick = (event) => this.name;

  constructor(sides) {
    super();
    const local = sides;
    this.sides = local;
  }

  get area() { return 0; }
  static async load(url) {
    if (url) { return fetch(url); }
  }
  *walk() { yield 1; }
  #secret() {}
}

function* generate(n) {
  function inner() {}
}
async function main({ a, b }, ...rest) {}
export const double = (x) => x * 2;
export const compose = async function named(f) { return f; };
const Local = class extends Shape {
  run() {}
};
module.exports.helper = function (x) { return x; };
Shape.prototype.draw = function () {};
const api = {
  get(url) { return url; },
  post: async (url) => url,
  'put-it': function () {},
};
describe('shapes', () => {
  const hidden = 1;
  function helperInTest() {}
});
