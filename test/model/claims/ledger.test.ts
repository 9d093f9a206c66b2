import assert from 'node:assert/strict';
import { Breaker } from '../../../model/claims/breaker.ts';
import { type ClaimEnd, isLater, type Place, type PodSight } from '../../../model/claims/claim.ts';
import { answersFor } from '../../../model/claims/crowd.ts';
import { Ledger } from '../../../model/claims/ledger.ts';
import { DEFAULT_PROMISE, promiseSeconds } from '../../../model/claims/promise-time.ts';

const PLACE: Place = { cpus: undefined, score: 5 };
const sight = (more: Partial<PodSight<string>> = {}): PodSight<string> => ({
  uid: 'a',
  version: '20',
  node: undefined,
  nominated: undefined,
  unscheduled: false,
  terminal: false,
  pod: 'needs',
  ...more,
});

function ledgerOf(shown: readonly string[] = []) {
  const ends: ClaimEnd[] = [];
  const reports = new Set(shown);
  const ledger = new Ledger<string>({
    isShown: (node, uid) => reports.has(`${node} ${uid}`),
    onEnd: (_, end) => ends.push(end),
  });
  const promise = (nodes: readonly string[], version = '10', now = 0) =>
    ledger.promise({
      uid: 'a',
      pod: 'needs',
      places: new Map(nodes.map((node) => [node, PLACE])),
      version,
      expires: now + 60,
    });
  const held = () => ['n1', 'n2', 'n3'].filter((node) => ledger.heldOn(node).length > 0);
  return { ledger, ends, promise, held, reports };
}

type Act = (under: ReturnType<typeof ledgerOf>) => void;

const CASES: readonly { name: string; acts: readonly Act[]; held: readonly string[]; ends: readonly ClaimEnd[] }[] = [
  {
    name: 'a promise holds every node that was answered',
    acts: [({ promise }) => promise(['n1', 'n2'])],
    held: ['n1', 'n2'],
    ends: [],
  },
  {
    name: 'a new filter of the same pod takes the place of the one before',
    acts: [({ promise }) => promise(['n1', 'n2']), ({ promise }) => promise(['n3'])],
    held: ['n3'],
    ends: ['filtered-again'],
  },
  {
    name: 'a filter that refuses everywhere ends it',
    acts: [({ promise }) => promise(['n1']), ({ promise }) => promise([])],
    held: [],
    ends: ['filtered-again'],
  },
  {
    name: 'binding narrows it, and time does not end it any more',
    acts: [
      ({ promise }) => promise(['n1', 'n2']),
      ({ ledger }) => ledger.observe(sight({ node: 'n2' })),
      ({ ledger }) => ledger.expire(10_000),
    ],
    held: ['n2'],
    ends: [],
  },
  {
    name: 'binding elsewhere ends it and holds the node that it is bound to',
    acts: [({ promise }) => promise(['n1']), ({ ledger }) => ledger.observe(sight({ node: 'n3' }))],
    held: ['n3'],
    ends: ['bound-elsewhere'],
  },
  {
    name: 'nomination narrows it',
    acts: [({ promise }) => promise(['n1', 'n2']), ({ ledger }) => ledger.observe(sight({ nominated: 'n1' }))],
    held: ['n1'],
    ends: [],
  },
  {
    name: 'a nomination that is withdrawn ends it',
    acts: [
      ({ promise }) => promise(['n1', 'n2']),
      ({ ledger }) => ledger.observe(sight({ nominated: 'n1' })),
      ({ ledger }) => ledger.observe(sight({ version: '21' })),
    ],
    held: [],
    ends: ['nomination-withdrawn'],
  },
  {
    name: 'PodScheduled False ends it',
    acts: [({ promise }) => promise(['n1']), ({ ledger }) => ledger.observe(sight({ unscheduled: true }))],
    held: [],
    ends: ['unschedulable'],
  },
  {
    name: 'the refusal of an earlier try does not',
    acts: [({ promise }) => promise(['n1'], '25'), ({ ledger }) => ledger.observe(sight({ unscheduled: true }))],
    held: ['n1'],
    ends: [],
  },
  {
    name: 'news from before the binding changes nothing for a bound pod',
    acts: [
      ({ ledger }) => ledger.observe(sight({ node: 'n1', version: '30' })),
      ({ ledger }) => ledger.observe(sight({ unscheduled: true, version: '31' })),
    ],
    held: ['n1'],
    ends: [],
  },
  {
    name: 'deletion ends it',
    acts: [({ promise }) => promise(['n1']), ({ ledger }) => ledger.deleted('a')],
    held: [],
    ends: ['deleted'],
  },
  {
    name: 'a bound pod that has ended ends it, report or not',
    acts: [
      ({ ledger }) => ledger.observe(sight({ node: 'n1' })),
      ({ ledger }) => ledger.observe(sight({ node: 'n1', terminal: true })),
    ],
    held: [],
    ends: ['terminal'],
  },
  {
    name: 'time ends it',
    acts: [
      ({ promise }) => promise(['n1'], '10', 100),
      ({ ledger, held }) => {
        ledger.expire(159);
        assert.deepEqual(held(), ['n1']);
      },
      ({ ledger }) => ledger.expire(160),
    ],
    held: [],
    ends: ['expired'],
  },
  {
    name: 'the time of a short promise ends it, though a longer one was made before',
    acts: [
      ({ ledger }) =>
        ledger.promise({ uid: 'b', pod: 'needs', places: new Map([['n2', PLACE]]), version: '10', expires: 700 }),
      ({ promise }) => promise(['n1']),
      ({ ledger }) => ledger.expire(60),
      ({ ledger, held }) => {
        assert.deepEqual(held(), ['n2']);
        ledger.expire(699);
        assert.deepEqual(held(), ['n2']);
        ledger.expire(700);
      },
    ],
    held: [],
    ends: ['expired', 'expired'],
  },
  {
    name: 'a report that shows the pod ends it, even before its own watch says that it is bound',
    acts: [
      ({ promise }) => promise(['n1', 'n2']),
      ({ ledger, reports }) => {
        reports.add('n2 a');
        ledger.reported('n2', ['a']);
      },
      ({ ledger }) => ledger.observe(sight({ node: 'n2' })),
    ],
    held: [],
    ends: ['shown'],
  },
  {
    name: 'a report of another node that shows a bound pod ends nothing',
    acts: [
      ({ ledger }) => ledger.observe(sight({ node: 'n1' })),
      ({ ledger, reports }) => {
        reports.add('n2 a');
        ledger.reported('n2', ['a']);
      },
    ],
    held: ['n1'],
    ends: [],
  },
  {
    name: 'a report that shows a pod which was promised several nodes speaks for its own node',
    acts: [
      ({ promise }) => promise(['n1', 'n2', 'n3']),
      ({ ledger, reports }) => {
        reports.add('n2 a');
        ledger.reported('n2', ['a']);
      },
    ],
    held: ['n1', 'n3'],
    ends: [],
  },
  {
    name: 'and where it was false, the pod still holds the node that it is bound to',
    acts: [
      ({ promise }) => promise(['n1', 'n2']),
      ({ ledger, reports }) => {
        reports.add('n2 a');
        ledger.reported('n2', ['a']);
      },
      ({ ledger }) => ledger.observe(sight({ node: 'n1' })),
    ],
    held: ['n1'],
    ends: [],
  },
  {
    name: 'a false report keeps no later filter from promising',
    acts: [
      ({ promise }) => promise(['n2']),
      ({ ledger, reports }) => {
        reports.add('n2 a');
        ledger.reported('n2', ['a']);
      },
      ({ promise }) => promise(['n1', 'n3'], '11'),
    ],
    held: ['n1', 'n3'],
    ends: ['filtered-again'],
  },
  {
    name: 'a promise that a report has made smaller ends in time, before later ones',
    acts: [
      ({ promise }) => promise(['n1', 'n2']),
      ({ ledger }) =>
        ledger.promise({ uid: 'b', pod: 'needs', places: new Map([['n3', PLACE]]), version: '10', expires: 90 }),
      ({ ledger, reports }) => {
        reports.add('n2 a');
        ledger.reported('n2', ['a']);
      },
      ({ ledger }) => ledger.expire(61),
    ],
    held: ['n3'],
    ends: ['expired'],
  },
  {
    name: 'what a report has shown is the report’s to tell: it does not come back',
    acts: [
      ({ ledger }) => ledger.observe(sight({ node: 'n1' })),
      ({ ledger, reports }) => {
        reports.add('n1 a');
        ledger.reported('n1', ['a']);
        reports.clear();
        ledger.reported('n1', []);
      },
      ({ ledger }) => ledger.observe(sight({ node: 'n1', version: '40' })),
    ],
    held: [],
    ends: ['shown'],
  },
  {
    name: 'after a restart bound and nominated pods hold their nodes',
    acts: [
      ({ ledger }) => ledger.observe(sight({ node: 'n1' })),
      ({ ledger }) => ledger.observe(sight({ uid: 'b', nominated: 'n2' })),
    ],
    held: ['n1', 'n2'],
    ends: [],
  },
  {
    name: 'a filter call about a pod that is bound promises nothing',
    acts: [({ ledger }) => ledger.observe(sight({ node: 'n1' })), ({ promise }) => promise(['n2'])],
    held: ['n1'],
    ends: [],
  },
];

describe('model/claims: ledger', () => {
  for (const { name, acts, held, ends } of CASES) {
    it(name, () => {
      const under = ledgerOf();
      for (const act of acts) act(under);
      assert.deepEqual(under.held(), held);
      assert.deepEqual(under.ends, ends);
    });
  }

  it('compares resourceVersions as numbers', () => {
    assert.ok(isLater('100', '99') && !isLater('99', '100') && !isLater('7', '7') && isLater('x', 'y'));
  });
});

describe('model/claims: how long a promise lasts', () => {
  it('outlasts kube-scheduler’s wait for volumes, and is short for a pod that has none', () => {
    const bindTimeoutSeconds = 600;
    assert.ok(promiseSeconds(true, DEFAULT_PROMISE) > bindTimeoutSeconds);
    assert.equal(promiseSeconds(false, DEFAULT_PROMISE), 60);
    assert.equal(promiseSeconds(false, 30), 30);
  });
});

describe('model/claims: crowd', () => {
  const CASES = [
    { most: 16, candidates: 2, others: 0, answers: 16 },
    { most: 16, candidates: 2, others: 1, answers: 1 },
    { most: 16, candidates: 5000, others: 10, answers: 16 },
    { most: 16, candidates: 100, others: 4, answers: 5 },
  ];
  for (const { most, candidates, others, answers } of CASES) {
    it(`answers at most ${answers} of ${candidates} while ${others} others are in flight`, () => {
      assert.equal(answersFor(most, candidates, others), answers);
    });
  }
});

describe('model/claims: breaker', () => {
  it('opens at the third refusal within a minute, longer each time, and closes by itself', () => {
    const breaker = new Breaker();
    assert.deepEqual(
      [0, 70, 80, 90].map((now) => breaker.failed('vm', now)),
      [undefined, undefined, undefined, 30],
    );
    assert.equal(breaker.heldFor('vm', 100), 20);
    assert.equal(breaker.heldFor('vm', 120), 0);
    assert.equal(breaker.heldFor('other', 100), 0);
    assert.deepEqual(
      [121, 122, 123].map((now) => breaker.failed('vm', now)),
      [undefined, undefined, 60],
    );
    breaker.sweep(10_000);
    assert.deepEqual(
      [1, 2, 3].map((now) => breaker.failed('vm', 10_000 + now)),
      [undefined, undefined, 30],
    );
  });
});
