import assert from 'node:assert/strict';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { RecheckChoice } from '../../../scheduler-plugin/controllers/recheck-choice.ts';
import { podId, podOf } from '../extender-fixture.ts';

const reader = new NeedsReader('all');
const needsOf = (cpu: string) => reader.read(podOf(cpu));
const four = needsOf('4');
const NEVER = Number.POSITIVE_INFINITY;

function choiceOf(fits: (cpus: string, node: string) => boolean = () => true) {
  const clock = { now: 1000 };
  const asked: string[] = [];
  const choice = new RecheckChoice({
    wouldFit(needs, node) {
      asked.push(node);
      return fits(needs.key, node);
    },
    now: () => clock.now,
  });
  /** The next choice, as text. */
  const next = () => {
    const { chosen, askAt, unfinished } = choice.next();
    const pods = chosen?.pods.map(({ uid }) => uid).join('+');
    return [chosen === undefined ? undefined : `${chosen.node} for ${pods}`, askAt - clock.now, unfinished ?? false];
  };
  /** The next chosen node, after as many pauses as it takes. */
  const nextChosen = () => {
    for (;;) {
      const { chosen, unfinished } = choice.next();
      if (unfinished !== true) return chosen;
    }
  };
  const touchNext = () => {
    const { chosen } = choice.next();
    assert.ok(chosen, 'there is a node to touch');
    choice.touched(chosen);
    return chosen.node;
  };
  return { choice, clock, asked, next, nextChosen, touchNext };
}

describe('the choice of the node to touch next', () => {
  it('is empty if no node improved or no pod waits', () => {
    const { choice, next, asked } = choiceOf();
    assert.deepEqual([next(), choice.pending, choice.waiting], [[undefined, NEVER, false], false, 0]);
    choice.improved('n1');
    assert.equal(choice.pending, false);
    choice.waits(podId('a'), four);
    assert.deepEqual([next(), choice.waiting, asked], [[undefined, NEVER, false], 1, []]);
  });

  it('is a node that improved, once, for all pods that it can take', () => {
    const { choice, next } = choiceOf((_, node) => node !== 'n2');
    choice.waits(podId('a'), four);
    choice.waits(podId('b'), four);
    for (const node of ['n2', 'n1', 'n3']) choice.improved(node);
    assert.equal(choice.pending, true);
    assert.deepEqual(next(), ['n1 for a+b', NEVER, false]);
    assert.deepEqual(next(), ['n3 for a+b', NEVER, false]);
    assert.deepEqual([next(), choice.pending], [[undefined, NEVER, false], false]);
  });

  it('continues with a node in the next call when its predictions have taken ten milliseconds', () => {
    let predictions = 0;
    const { choice, clock, next } = choiceOf(() => {
      predictions++;
      clock.now += 0.004;
      return true;
    });
    for (let cpus = 2; cpus <= 16; cpus += 2) choice.waits(podId(`p${cpus}`), needsOf(String(cpus)));
    choice.improved('n1');
    const counts: number[] = [];
    let chosen: unknown;
    for (let calls = 0; calls < 9 && chosen === undefined; calls++) {
      const before = predictions;
      chosen = next()[0];
      counts.push(predictions - before);
    }
    assert.deepEqual([chosen, counts], ['n1 for p2+p4+p6+p8+p10+p12+p14+p16', [3, 3, 2]]);
  });

  it('predicts for the kinds of each namespace in turn', () => {
    const { choice, nextChosen } = choiceOf();
    for (let i = 0; i < 300; i++) choice.waits(podId(`p${i}`, 'crowd'), { ...four, key: `${i}` });
    choice.waits(podId('victim', 'victims'), { ...four, key: 'of the victim' });
    choice.improved('n1');
    const uids = nextChosen()?.pods.map(({ uid }) => uid) ?? [];
    assert.deepEqual([uids.length, uids.includes('victim')], [200, true]);
  });

  it('touches the nodes that were not offered for each namespace in turn', () => {
    const { choice, touchNext } = choiceOf();
    for (let i = 0; i < 80; i++) choice.neverOffered(podId(`p${i}`, 'crowd'), four, `far${i}`, 1);
    choice.neverOffered(podId('victim', 'victims'), four, 'near', 1);
    assert.deepEqual([touchNext(), touchNext(), touchNext()], ['far0', 'near', 'far1']);
  });

  it('doubles the wait after each touch for the same pod and node, up to 256 s, and then ends the touches', () => {
    const { choice, clock, next, touchNext } = choiceOf();
    choice.waits(podId('a'), four);
    choice.improved('n1');
    assert.equal(touchNext(), 'n1');
    for (const wait of [1, 2, 4, 8, 16, 32, 64, 128, 256]) {
      choice.waits(podId('a'), four);
      choice.improved('n1');
      assert.deepEqual([next(), choice.pending], [[undefined, wait, false], true]);
      clock.now += wait - 0.1;
      assert.deepEqual(next()[0], undefined);
      clock.now += 0.1;
      choice.waits(podId('a'), four);
      assert.equal(touchNext(), 'n1');
    }
    choice.improved('n1');
    assert.deepEqual([next(), choice.pending], [[undefined, NEVER, false], false]);
  });

  it('delays a node until the first touch for one of its pods is due', () => {
    const { choice, clock, next, touchNext } = choiceOf();
    choice.waits(podId('a'), four);
    choice.improved('n1');
    touchNext();
    clock.now += 1;
    choice.improved('n1');
    touchNext();
    choice.waits(podId('b'), four);
    choice.improved('n1');
    assert.deepEqual(next(), ['n1 for b', NEVER, false]);
    choice.improved('n1');
    touchNext();
    choice.improved('n1');
    assert.deepEqual(next(), [undefined, 1, false], 'b waits for a second, a for two');
  });

  it('touches a node that was never offered once for each try of a round, then with backoff', () => {
    const { choice, clock, next, touchNext } = choiceOf();
    const offer = () => choice.neverOffered(podId('a'), four, 'far', 3);
    for (let round = 0; round < 3; round++) {
      offer();
      assert.equal(choice.pending, true);
      assert.equal(touchNext(), 'far');
      assert.equal(choice.pending, false);
    }
    for (const wait of [0.5, 1, 2, 4]) {
      offer();
      assert.deepEqual([next(), choice.pending], [[undefined, wait, false], true]);
      clock.now += wait;
      assert.equal(touchNext(), 'far');
    }
  });

  it('is empty when the nodes are forgotten or no pod waits any more', () => {
    const { choice, next, touchNext } = choiceOf();
    const fill = () => {
      choice.waits(podId('a'), four);
      choice.improved('n1');
      touchNext();
      choice.improved('n1');
      next();
      choice.improved('n2');
      choice.neverOffered(podId('b'), four, 'far', 1);
    };
    fill();
    choice.forgetNodes();
    assert.deepEqual([choice.pending, next(), choice.waiting], [false, [undefined, NEVER, false], 2]);
    choice.neverOffered(podId('b'), four, 'far', 1);
    choice.settled('b');
    assert.equal(choice.pending, false, 'the node that was never offered to b');
    choice.improved('n3');
    choice.settled('a');
    assert.deepEqual([choice.pending, choice.waiting], [false, 0]);
  });

  it('keeps a pod of the previous replica until one touch, or longer if the scheduler asks about it', () => {
    const { choice, touchNext } = choiceOf();
    choice.mayWait(podId('a'), four);
    choice.waits(podId('b'), four);
    choice.mayWait(podId('b'), four);
    choice.improved('n1');
    touchNext();
    assert.equal(choice.waiting, 1);
    choice.mayWait(podId('c'), four);
    choice.improved('n2');
    const { chosen } = choice.next();
    choice.waits(podId('c'), four);
    choice.touched(chosen!);
    assert.equal(choice.waiting, 2, 'the scheduler asked about it meanwhile');
    choice.mayWait(podId('d'), four);
    choice.improved('n3');
    const late = choice.next().chosen;
    choice.settled('d');
    choice.touched(late!);
    assert.equal(choice.waiting, 2);
  });
});
