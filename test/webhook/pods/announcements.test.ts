import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../../kube/client.ts';
import { createEventRecorder, type EventTarget, type EventText } from '../../../kube/events.ts';
import { DECISION_ANNOTATION } from '../../../model/names.ts';
import { createAnnouncements } from '../../../webhook/pods/announcements.ts';
import { eventually } from '../../support/eventually.ts';
import { silent } from '../../support/logger.ts';

const UID = '6e1d0a2e-0000-4000-8000-000000000001';
const vmi = (uid = UID): EventTarget => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  namespace: 'east',
  name: 'fw',
  uid,
});
const padded: EventText = { type: 'Normal', reason: 'PaddedToWholeCores', message: 'from 9 to 10 CPUs' };
const NOW = Date.parse('2026-11-22T12:00:00Z');

interface Launcher {
  readonly decision: string;
  readonly owner?: string;
  readonly created?: string;
}

/** The Events after a decision `text`, if the API server has these launchers. */
function stage(launchers: Launcher[], callersAreKnown = false, failure?: string) {
  const said: string[] = [];
  const asked: unknown[] = [];
  const announcements = createAnnouncements({
    client: {
      get: async (path, options) => {
        asked.push([path, options?.query?.['labelSelector']]);
        if (path.includes('/virtualmachineinstances/')) {
          const failed = { type: 'Synchronized', status: 'False', reason: 'FailedCreate', message: failure };
          return { metadata: { uid: UID }, status: { conditions: failure === undefined ? [] : [failed] } };
        }
        const items = launchers.map(({ decision, owner = UID, created = '2026-11-22T12:00:01Z' }) => ({
          metadata: {
            annotations: { [DECISION_ANNOTATION]: decision },
            creationTimestamp: created,
            ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'fw', uid: owner }],
          },
        }));
        return { items };
      },
    },
    events: { record: (_, { reason }) => void said.push(reason) },
    callersAreKnown,
    log: silent,
    looks: [10, 30, 60],
    wallClock: () => NOW,
  });
  return { announcements, said, asked };
}

describe('the announcement of a decision for an unknown caller', () => {
  it('waits for the launcher with the decision, and is sent once', async () => {
    const launchers: Launcher[] = [];
    const { announcements, said } = stage(launchers);
    announcements.decided(vmi(), 'ten', [padded]);
    announcements.decided(vmi(), 'ten', [padded, { ...padded, reason: 'HeldToItsNetworks', message: 'more' }]);
    await delay(15);
    assert.deepEqual(said, []);
    launchers.push({ decision: 'ten' });
    await eventually(() => said.length > 1, 'said');
    assert.deepEqual(said, ['PaddedToWholeCores', 'HeldToItsNetworks']);
    announcements.decided(vmi(), 'ten', [{ ...padded, message: 'forged' }]);
    await delay(80);
    assert.equal(said.length, 2, 'a launcher has one decision');
  });

  const forged: [string, Launcher][] = [
    ['another decision', { decision: 'twelve' }],
    ['another owner', { decision: 'ten', owner: 'someone-else' }],
    ['a launcher from an hour ago', { decision: 'ten', created: '2026-11-22T11:00:00Z' }],
  ];
  for (const [name, launcher] of forged) {
    it(`is never sent if the API server has ${name}`, async () => {
      const { announcements, said } = stage([launcher]);
      announcements.decided(vmi(), 'ten', [padded]);
      await delay(90);
      assert.deepEqual(said, []);
    });
  }

  it('is checked again after a later review if the first checks found nothing', async () => {
    const launchers: Launcher[] = [];
    const { announcements, said, asked } = stage(launchers);
    announcements.decided(vmi(), 'ten', [padded]);
    await eventually(() => asked.length === 6, 'three looks, for the launcher and for its failure');
    await delay(20);
    launchers.push({ decision: 'ten' });
    announcements.decided(vmi(), 'ten', [padded]);
    await eventually(() => said.length > 0, 'the Event is sent');
    announcements.stop();
    assert.deepEqual(said, ['PaddedToWholeCores']);
  });

  it('is not sent for 500 reviews of VMIs that do not exist, and causes a limited number of requests', async () => {
    const { announcements, said, asked } = stage([]);
    for (let i = 0; i < 500; i++) {
      announcements.decided(vmi(`uid-${i}`), 'ten', [padded]);
      announcements.refused(vmi(`uid-${i}`), padded);
    }
    announcements.decided(vmi('a,b!=c'), 'ten', [padded]);
    await delay(120);
    assert.deepEqual(said, []);
    assert.ok(asked.length > 0 && asked.length <= 256 * 3 * 2, `${asked.length} questions`);
    assert.ok(!asked.some((one) => JSON.stringify(one).includes('!=')), 'no text of a caller in a selector');
    announcements.stop();
  });

  it('causes no request for a VMI without a uid', async () => {
    const { announcements, asked } = stage([]);
    const { uid: _, ...nameless } = vmi();
    announcements.decided(nameless, 'ten', [padded]);
    announcements.refused(nameless, padded);
    await delay(30);
    announcements.stop();
    assert.deepEqual(asked, []);
  });

  it('has the padding and the quoted refusal if KubeVirt reports that the launcher could not be created', async () => {
    const refusal = {
      type: 'Warning',
      reason: 'LauncherRefused',
      message: 'two networks have no NUMA node in common',
    } as const;
    const quoted = `admission webhook denied the request: plumbline: ${refusal.message}`;
    for (const [failure, expected] of [
      [undefined, []],
      ['exceeded quota', ['PaddedToWholeCores']],
      [quoted, ['PaddedToWholeCores', 'LauncherRefused']],
    ] as const) {
      const { announcements, said } = stage([], false, failure);
      announcements.decided(vmi(), 'ten', [padded, { ...padded, reason: 'LauncherNotAsAsked', message: 'forged' }]);
      announcements.refused(vmi(), refusal);
      if (expected.length > 0) await eventually(() => said.length >= expected.length, 'said');
      else await delay(120);
      assert.deepEqual(said, expected);
    }
  });

  it('is sent at once if callers are known, also for a refusal', () => {
    const { announcements, said } = stage([], true);
    announcements.decided(vmi(), 'ten', [padded]);
    announcements.refused(vmi(), { ...padded, reason: 'LauncherRefused' });
    assert.deepEqual(said, ['PaddedToWholeCores', 'LauncherRefused']);
  });
});

describe('Events', () => {
  const recorder = (create: () => Promise<unknown>) => {
    let writes = 0;
    let now = 0;
    const client = {
      create: () => {
        writes++;
        return create();
      },
    } as unknown as KubeClient;
    const events = createEventRecorder({ client, component: 'test', log: silent, now: () => now });
    return {
      events,
      writes: () => writes,
      pass: (seconds: number) => {
        now += seconds;
      },
    };
  };

  it('for one object are limited to 25 at once and then one in five minutes', async () => {
    const { events, writes, pass } = recorder(async () => undefined);
    for (let i = 0; i < 200; i++) {
      events.record(vmi(), { ...padded, message: `${i}` });
      await events.flush();
    }
    assert.equal(writes(), 25);
    pass(300);
    for (let i = 0; i < 10; i++) events.record(vmi(), { ...padded, message: `later ${i}` });
    assert.equal(writes(), 26);
    events.record(vmi('another'), padded);
    assert.equal(writes(), 27, 'another object has its own limit');
  });

  it('are dropped beyond 64 at a time while the API server does not answer', () => {
    const { events, writes } = recorder(() => new Promise(() => undefined));
    for (let i = 0; i < 1000; i++) events.record(vmi(`uid-${i}`), padded);
    assert.equal(writes(), 64);
  });
});
