import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';
import { endsWithUs } from '../support/children.ts';
import { skipWithout } from '../support/parts.ts';
import { type Copy, createCopy } from './copy.ts';
import { type Judged, judge, scoreOf } from './judge.ts';
import { placedMutants } from './mutants.ts';
import { createPlayer, type Player } from './player.ts';
import { FailingTests, findReach } from './reach.ts';

const SOURCE = `const BASE = 1 / 2;
let kept: number | undefined;
export function clamp(value: number, most: number): number {
  if (value > most) return most;
  let rest = value;
  while (rest < 0) rest += most;
  return rest;
}
export const double = (value: number) => value / BASE;
export const first = (value: number) => {
  kept ??= value + 4;
  return kept;
};
export function unused(a: boolean) { return !a; }
`;

const testOf = (...assertions: string[]) => `import assert from 'node:assert/strict';
import { clamp, double, first } from '../../planted/clamp.ts';
describe('clamp', () => {
  ${assertions.map((text, i) => `it('holds ${i}', () => { ${text} });`).join('\n  ')}
});
`;

const GOOD = testOf(
  'assert.equal(clamp(5, 3), 3);',
  'assert.equal(clamp(2, 3), 2);',
  'assert.equal(clamp(-2, 3), 1);',
  'assert.equal(clamp(0, 3), 0);',
  'assert.equal(double(3), 6);',
  'assert.equal(first(3), 7);',
);
const WEAK = testOf('clamp(5, 3);', 'assert.equal(typeof clamp(2, 3), "number");');
const C_TEST = `import assert from 'node:assert/strict';
import { createGateFixture } from '../native/gate.ts';
describe('the plugin', () => {
  it('is built, and says its versions', async () => {
    const gate = createGateFixture();
    try {
      const { code, stdout } = await gate.call({ verb: 'VERSION', conf: { cniVersion: '1.1.0' } });
      assert.deepEqual([code, stdout.includes('supportedVersions')], [0, true]);
    } finally { gate.remove(); }
  });
});
`;

describe('the verdict on a change', function () {
  this.timeout(600_000);
  let copy: Copy;
  let player: Player;
  before(() => {
    copy = createCopy();
    copy.write('test/planted/weak.test.ts', WEAK);
    copy.write('test/planted/good.test.ts', GOOD);
    copy.write('test/planted/other.test.ts', "describe('else', () => { it('is something else', () => undefined); });");
    copy.write('test/planted/wrong.test.ts', testOf('assert.equal(clamp(5, 3), 4);'));
    copy.write('test/planted/c.test.ts', C_TEST);
  });
  beforeEach(() => {
    copy.write('planted/clamp.ts', SOURCE);
    player = createPlayer(copy);
  });
  afterEach(() => player.end());
  after(() => copy.remove());

  const mutants = placedMutants('planted/clamp.ts', SOURCE);
  /** The verdicts on the mutants of these kinds, in order. */
  async function outcomes(tests: readonly string[], ...some: (readonly [operator: string, was: string])[]) {
    const reached = await findReach(copy, player, mutants, tests);
    const found: Judged[] = [];
    for (const [operator, was] of some) {
      const one = reached.find((it) => it.operator === operator && it.was === was);
      assert.ok(one, operator);
      found.push(await judge(copy, player, one));
    }
    return found;
  }

  it('is survived with a weak test', async () => {
    const found = await outcomes(
      ['planted/weak.test.ts'],
      ['> to >=', 'value > most'],
      ['condition to true', 'value > most'],
    );
    assert.deepEqual(
      found.map(({ outcome }) => outcome),
      ['survived', 'survived'],
    );
    assert.deepEqual(scoreOf(found), { noticed: 0, counted: 2, percent: 0 });
  });

  it('is noticed with a good test, which is named', async () => {
    const tests = ['planted/good.test.ts', 'planted/other.test.ts', 'planted/weak.test.ts'];
    const found = await outcomes(
      tests,
      ['condition to true', 'value > most'],
      // In values that are computed while the file is loaded, and in those that are computed only once.
      ['/ to *', '1 / 2'],
      ['+ to -', 'value + 4'],
      ['/ to *', 'value / BASE'],
    );
    assert.deepEqual(
      found.map(({ outcome, by }) => [outcome, by]),
      [
        ['noticed', 'clamp holds 1'],
        ['noticed', 'clamp holds 4'],
        ['noticed', 'clamp holds 5'],
        ['noticed', 'clamp holds 4'],
      ],
    );
    assert.deepEqual(scoreOf(found), { noticed: 4, counted: 4, percent: 100 });
  });

  it('runs only files that reach the place, and counts an unreached place as unnoticed', async () => {
    const tests = ['planted/good.test.ts', 'planted/other.test.ts', 'planted/weak.test.ts'];
    const reached = await findReach(copy, player, mutants, tests);
    const find = (operator: string, was: string) =>
      reached.find((one) => one.operator === operator && one.was === was)!;
    const names = (operator: string, was: string) =>
      find(operator, was)
        .tests.map(({ name }) => name)
        .sort();
    assert.deepEqual(names('> to >=', 'value > most'), ['planted/good.test.ts', 'planted/weak.test.ts']);
    assert.deepEqual(names('+= to -=', 'rest += most'), ['planted/good.test.ts']);
    // Loading it is enough.
    assert.deepEqual(names('/ to *', '1 / 2'), ['planted/good.test.ts', 'planted/weak.test.ts']);
    const judged = await judge(copy, player, find('! left out', '!a'));
    assert.equal(judged.outcome, 'not reached');
    assert.deepEqual(scoreOf([judged]), { noticed: 0, counted: 1, percent: 0 });
  });

  it('is noticed for an endless loop, which is ended; the next change is judged as usual', async () => {
    const found = await outcomes(
      ['planted/good.test.ts'],
      ['+= to -=', 'rest += most'],
      ['condition to false', 'value > most'],
    );
    assert.deepEqual(
      found.map(({ outcome }) => outcome),
      ['late', 'noticed'],
    );
    assert.equal(scoreOf(found).noticed, 2);
  });

  it('refuses tests that fail without any change', () =>
    assert.rejects(outcomes(['planted/wrong.test.ts']), (error: Error) => {
      assert.ok(error instanceof FailingTests);
      assert.match(error.message, /planted\/wrong.test.ts fails without any change: clamp holds 0/);
      return true;
    }));

  it('C: runs the tests that build it, and ignores changes that do not compile', async function () {
    skipWithout('musl', this);
    skipWithout('make', this);
    const file = 'native/cni/text.c';
    const text = copy.read(file);
    const reached = await findReach(copy, player, placedMutants(file, text), [
      'planted/c.test.ts',
      'planted/other.test.ts',
    ]);
    const copying = reached.find(({ operator, was }) => operator === 'call left out' && was.startsWith('memcpy'))!;
    assert.deepEqual(
      copying.tests.map(({ name }) => name),
      ['planted/c.test.ts'],
    );
    const surrogates = reached.find(({ was }) => was === '0x9F')!;
    const nonsense = { ...surrogates, replacement: 'no_such_name' };
    const outcomesInC = [];
    for (const one of [copying, surrogates, nonsense]) outcomesInC.push(await judge(copy, player, one));
    assert.deepEqual(
      outcomesInC.map(({ outcome }) => outcome),
      ['noticed', 'survived', 'invalid'],
    );
    assert.equal(scoreOf(outcomesInC).counted, 2);
    assert.equal(copy.read(file), text);
  });
});

describe('npm run mutate', function () {
  this.timeout(300_000);
  const temporary = mkdtempSync(join(tmpdir(), 'plumbline-run-'));
  after(() => rmSync(temporary, { recursive: true, force: true }));

  function run(args: string[], onOutput: (text: string, kill: () => void) => void = () => undefined) {
    const child = spawn(process.execPath, ['--import', 'tsx', join(import.meta.dirname, 'run.ts'), ...args], {
      cwd: root,
      env: { ...process.env, TMPDIR: temporary },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    endsWithUs(child);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output += chunk;
        onOutput(output, () => child.kill('SIGINT'));
      });
    }
    return new Promise<{ code: number | null; output: string }>((resolve) =>
      child.once('close', (code) => resolve({ code, output })),
    );
  }
  const copies = () => readdirSync(temporary).filter((name) => name.startsWith('plumbline-mutate-'));

  it('prints its usage', async () => {
    const { code, output } = await run(['--help']);
    assert.equal(code, 0);
    for (const flag of ['--sample', '--seed', '--tests', '--least', '--result', '--again'])
      assert.ok(output.includes(flag), flag);
  });

  for (const [args, problem] of [
    [[], /name a folder/],
    [['no-such-folder'], /no-such-folder: there is no such folder/],
    [['model', '--sample', 'few'], /--sample few: expected a whole number/],
    [['model', '--tests', 'no-such-tests'], /test\/no-such-tests: there are no tests/],
    [['model', '--again', '/no/such/file'], /--again \/no\/such\/file: /],
  ] as const) {
    it(`refuses: ${args.join(' ')}`, async () => {
      const { code, output } = await run([...args]);
      assert.equal(code, 2);
      assert.match(output, problem);
    });
  }

  it('repeats a sample by its seed, prints the score and leaves nothing behind', async () => {
    const args = ['model/quantity.ts', '--tests', 'model/quantity.test.ts', '--sample', '2', '--seed', '1'];
    const [first, second] = [await run(args), await run([...args, '--least', '101'])];
    assert.match(
      first.output,
      /^seed 1\n.* 2 of them, 1 test files\n[\s\S]*model\/quantity\.ts: \d of 2 noticed, [\d.]+ %/,
    );
    assert.equal(second.output, first.output);
    assert.deepEqual([first.code, second.code], [0, 1]);
    assert.deepEqual(copies(), []);
  });

  it('ends at once when interrupted, and leaves nothing behind', async () => {
    const { code, output } = await run(['model', '--seed', '1'], (text, interrupt) => {
      if (text.includes('test files')) interrupt();
    });
    assert.equal(code, 130, output);
    assert.deepEqual(copies(), []);
  });
});
