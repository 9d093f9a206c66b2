import assert from 'node:assert/strict';
import { fitLine, rises } from './line.ts';

const noisy = (slope: number, noise: number) =>
  fitLine(Array.from({ length: 60 }, (_, x) => [x, 100 + slope * x + (x % 2 === 0 ? noise : -noise)] as const));

describe('the line through the measurements of a soak', () => {
  it('rises if a leak exceeds its noise and its allowance', () => {
    assert.equal(rises(noisy(1, 2), 60, 30), true);
  });

  for (const [name, slope, noise, allowance] of [
    ['is flat', 0, 5, 1],
    ['falls', -1, 5, 1],
    ['has a slope that its noise explains', 0.05, 40, 1],
    ['rises within its allowance', 0.1, 0.1, 10],
  ] as const) {
    it(`does not rise if it ${name}`, () => assert.equal(rises(noisy(slope, noise), 60, allowance), false));
  }
});
