import assert from 'node:assert/strict';
import { mock } from 'node:test';
import type { RequestOptions } from '../../../kube/client.ts';
import type { EventTarget, EventText } from '../../../kube/events.ts';
import { DECISION_ANNOTATION } from '../../../model/names.ts';
import { createAnnouncements } from '../../../webhook/pods/announcements.ts';
import { silent } from '../../support/logger.ts';

const UID = '6e1d0a2e-0000-4000-8000-000000000001';
const NOW = Date.parse('2026-11-22T12:00:00Z');
const LOOKS = [10, 30, 60];

const vmi = (uid = UID): EventTarget => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  namespace: 'east',
  name: 'fw',
  uid,
});
const text = (message: string, reason = 'PaddedToWholeCores'): EventText => ({ type: 'Normal', reason, message });

interface Launcher {
  readonly decision?: string;
  readonly owners?: readonly string[];
  readonly created?: string;
}

const launcherOf = ({ decision = 'ten', owners = [UID], created = '2026-11-22T12:00:01Z' }: Launcher) => ({
  metadata: {
    annotations: { [DECISION_ANNOTATION]: decision },
    creationTimestamp: created,
    ownerReferences: owners.map((uid) => ({ apiVersion: 'v1', kind: 'VirtualMachineInstance', name: 'fw', uid })),
  },
});
const FAILED = { type: 'Synchronized', status: 'False', reason: 'FailedCreate' };

/** The content of the API server, which tests change while the clock stands still. */
interface Evidence {
  launchers: Launcher[] | null;
  conditions: object[] | null;
  /** The uid of the VMI. */
  uid: string;
  /** Requests wait until it resolves. */
  held?: Promise<void>;
}

function stage(evidence: Partial<Evidence> = {}) {
  const state: Evidence = { launchers: [], conditions: [], uid: UID, ...evidence };
  const said: string[] = [];
  const asked: { path: string; options: RequestOptions | undefined }[] = [];
  const announcements = createAnnouncements({
    client: {
      get: async (path, options) => {
        asked.push({ path, options });
        await state.held;
        if (path.includes('/virtualmachineinstances/')) {
          return { metadata: { uid: state.uid }, status: { conditions: state.conditions } };
        }
        return { items: state.launchers?.map(launcherOf) ?? null };
      },
    },
    events: { record: (_, { message }) => void said.push(message) },
    callersAreKnown: false,
    log: silent,
    looks: LOOKS,
    wallClock: () => NOW,
  });
  return { announcements, state, said, asked };
}

/** Runs all work that does not wait for a timer. */
async function settle() {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
}

async function pass(milliseconds: number) {
  mock.timers.tick(milliseconds);
  await settle();
}

describe('evidence for a decision of an unknown caller', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('is requested with a limited list, by uid, and with a timeout', async () => {
    const { announcements, asked } = stage();
    announcements.decided(vmi(), 'ten', [text('a')]);
    await pass(10);
    assert.deepEqual(asked, [
      {
        path: '/api/v1/namespaces/east/pods',
        options: { query: { labelSelector: `kubevirt.io/created-by=${UID}`, limit: 20 }, timeout: 5 },
      },
      { path: '/apis/kubevirt.io/v1/namespaces/east/virtualmachineinstances/fw', options: { timeout: 5 } },
    ]);
  });

  it('is not requested if there is no Event to send', async () => {
    const { announcements, asked } = stage();
    announcements.decided(vmi(), 'ten', []);
    await pass(100);
    assert.deepEqual(asked, []);
  });

  it('confirms the Events of several reviews of the same launcher, once', async () => {
    const { announcements, said, asked } = stage({ launchers: [{}] });
    announcements.decided(vmi(), 'ten', [text('a')]);
    announcements.decided(vmi(), 'ten', [text('b'), text('a')]);
    await pass(10);
    assert.deepEqual(said, ['a', 'b']);
    await pass(100);
    assert.deepEqual(said, ['a', 'b']);
    assert.equal(asked.length, 1, 'no request after the Event is sent');
    announcements.decided(vmi(), 'ten', [text('forged')]);
    await pass(100);
    assert.equal(asked.length, 1, 'no request for a decision with a sent Event');
  });

  const launchers: [string, Launcher[], boolean][] = [
    ['no launcher', [], false],
    ['another decision', [{ decision: 'twelve' }], false],
    ['the launcher after another one', [{ decision: 'twelve' }, {}], true],
    ['the launcher before another one', [{}, { decision: 'twelve' }], true],
    ['a launcher of another owner', [{ owners: ['other'] }], false],
    ['a launcher without an owner', [{ owners: [] }], false],
    ['a launcher with several owners', [{ owners: ['other', UID] }], true],
    ['a launcher that is younger than a minute', [{ created: '2026-11-22T11:59:01Z' }], true],
    ['a launcher that is a minute old', [{ created: '2026-11-22T11:59:00Z' }], false],
    ['a launcher from a clock that is ahead', [{ created: '2026-11-22T12:00:59Z' }], true],
    ['a launcher from an hour in the future', [{ created: '2026-11-22T13:00:00Z' }], false],
    ['a launcher of unknown age', [{ created: '' }], false],
  ];
  for (const [name, found, proven] of launchers) {
    it(`${proven ? 'is' : 'is not'} ${name}`, async () => {
      const { announcements, said } = stage({ launchers: found });
      announcements.decided(vmi(), 'ten', [text('a')]);
      await pass(100);
      assert.deepEqual(said, proven ? ['a'] : []);
    });
  }

  const failures: [string, object[] | null, string[]][] = [
    ['no conditions', null, []],
    ['a failure without a message', [FAILED], ['padded']],
    ['a failure for another reason', [{ ...FAILED, message: 'exceeded quota' }], ['padded']],
    ['a failure that quotes', [{ ...FAILED, message: 'denied: quoted' }], ['padded', 'quoted']],
    ['the failure after another condition', [{ type: 'Ready', status: 'False' }, FAILED], ['padded']],
    ['another type', [{ ...FAILED, type: 'Ready' }], []],
    ['another status', [{ ...FAILED, status: 'True' }], []],
    ['another reason', [{ ...FAILED, reason: 'FailedDelete' }], []],
  ];
  for (const [name, conditions, expected] of failures) {
    it(`for a launcher that was not created: ${name}`, async () => {
      const { announcements, said } = stage({ launchers: null, conditions });
      announcements.decided(vmi(), 'ten', [text('padded'), text('quoted', 'LauncherNotAsAsked')]);
      await pass(10);
      assert.deepEqual(said, expected);
    });
  }

  it('is not the failure of a VMI with another uid', async () => {
    const { announcements, said } = stage({ conditions: [FAILED], uid: 'other' });
    announcements.decided(vmi(), 'ten', [text('a')]);
    await pass(100);
    assert.deepEqual(said, []);
  });

  it('may arrive until the last check, and not later', async () => {
    const { announcements, state, said, asked } = stage();
    announcements.decided(vmi(), 'ten', [text('a')]);
    await pass(59);
    assert.equal(asked.length, 4);
    state.launchers = [{}];
    await pass(1);
    assert.deepEqual(said, ['a']);
    announcements.decided(vmi('late'), 'ten', [text('b')]);
    await pass(60);
    state.launchers = [{ owners: ['late'] }];
    await pass(1000);
    assert.deepEqual(said, ['a']);
    announcements.decided(vmi('late'), 'ten', [text('c')]);
    await pass(10);
    assert.deepEqual(said, ['a', 'c'], 'a decision without evidence is forgotten');
  });

  it('for a newer decision replaces that for an older one, with its own checks', async () => {
    const { announcements, state, said } = stage();
    announcements.decided(vmi(), 'ten', [text('old')]);
    await pass(45);
    announcements.decided(vmi(), 'twelve', [text('new')]);
    state.launchers = [{}];
    await pass(15);
    assert.deepEqual(said, [], 'the older decision is not checked any more');
    state.launchers = [{ decision: 'twelve' }];
    await pass(15);
    assert.deepEqual(said, ['new'], 'the checks of the newer decision do not end with those of the older one');
  });

  it('is not used if it arrives after a newer decision or after a stop', async () => {
    for (const interrupt of ['decide', 'stop'] as const) {
      let release: () => void = assert.fail;
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      const { announcements, said } = stage({ launchers: [{}], held });
      announcements.decided(vmi(), 'ten', [text('old')]);
      await pass(10);
      if (interrupt === 'decide') announcements.decided(vmi(), 'twelve', [text('new')]);
      else announcements.stop();
      release();
      await settle();
      assert.deepEqual(said, [], interrupt);
    }
  });

  it('is not requested after a stop', async () => {
    const { announcements, asked } = stage();
    announcements.decided(vmi(), 'ten', [text('a')]);
    announcements.refused(vmi(), text('b'));
    announcements.stop();
    await pass(100);
    assert.deepEqual(asked, []);
  });

  it('leaves no timer after the last check', async () => {
    const { announcements } = stage();
    announcements.decided(vmi(), 'ten', [text('a')]);
    await pass(100);
    const cleared = mock.method(globalThis, 'clearTimeout');
    announcements.stop();
    assert.equal(cleared.mock.callCount(), 0);
    cleared.mock.restore();
  });

  it('is requested for a refusal as well as for a decision', async () => {
    const { announcements, said } = stage({ conditions: [{ ...FAILED, message: 'no' }] });
    announcements.decided(vmi(), 'ten', [text('yes')]);
    announcements.refused(vmi(), text('no', 'LauncherRefused'));
    await pass(10);
    assert.deepEqual(said, ['yes', 'no']);
  });

  it('is requested for the 256 newest decisions', async () => {
    const { announcements, asked } = stage();
    for (let i = 0; i < 257; i++) announcements.decided(vmi(`uid-${i}`), 'ten', [text('a')]);
    await pass(10);
    const selectors = asked.flatMap(({ options }) => options?.query?.['labelSelector'] ?? []);
    assert.equal(selectors.length, 256);
    assert.equal(selectors[0], 'kubevirt.io/created-by=uid-1');
  });

  it('is not requested again for the 1,000 newest announcements', async () => {
    const uids = Array.from({ length: 1001 }, (_, i) => `uid-${i}`);
    const { said, state, announcements } = stage({ conditions: [FAILED] });
    for (const uid of uids) {
      state.uid = uid;
      announcements.decided(vmi(uid), 'ten', [text(uid)]);
      await pass(10);
    }
    assert.deepEqual(said, uids);
    const again = async (uid: string) => {
      state.uid = uid;
      announcements.decided(vmi(uid), 'ten', [text(`${uid} again`)]);
      await pass(10);
      return said.includes(`${uid} again`);
    };
    assert.equal(await again('uid-1'), false);
    assert.equal(await again('uid-0'), true);
  });
});
