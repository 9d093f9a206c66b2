import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { type KubeClient, KubeError } from '../../../kube/client.ts';
import { createRequirement } from '../../../webhook/cluster/requirement.ts';
import { recordingLogger } from '../../support/logger.ts';
import { settle } from './scripted-lists.ts';

const ACCOUNT = { kind: 'ServiceAccount', name: 'plumbline-webhook', namespace: 'plumbline-system' };

/** An API server whose binding has these subjects, and whose configurations have these CA bundles, one after the other. */
function stage(subjects: unknown, bundles: (string | undefined)[] = ['CA', 'CA', 'CA']) {
  const { log, lines } = recordingLogger();
  const state = { subjects, notReady: undefined as string | undefined, error: undefined as Error | undefined };
  const seen: boolean[] = [];
  let looks = 0;
  let configurations = 0;
  const client = {
    async get(path: string) {
      if (!path.includes('/rolebindings/')) {
        const caBundle = bundles[configurations++ % bundles.length];
        return { webhooks: [{ name: 'one', clientConfig: { ...(caBundle !== undefined && { caBundle }) } }] };
      }
      looks++;
      if (state.error !== undefined) throw state.error;
      return { subjects: state.subjects };
    },
    async patch(_path: string, _type: string, body: { subjects: unknown }) {
      state.subjects = body.subjects;
    },
  } as unknown as KubeClient;
  const requirement = createRequirement({
    client,
    notReady: () => state.notReady,
    onChange: (required) => void seen.push(required),
    log,
  });
  return { ...requirement, state, seen, lines, looks: () => looks };
}

describe('the checks of whether the API server calls the webhook', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  const pass = async (seconds: number) => {
    mock.timers.tick(seconds * 1000);
    await settle();
  };

  it('run every 2 s until it does, then every 30 s, and log each change once', async () => {
    const { run, state, seen, lines, looks } = stage([]);
    const stopped = new AbortController();
    state.notReady = 'not yet';
    const ended = run(stopped.signal);
    await settle();
    assert.deepEqual(seen, [false]);
    await pass(1.9);
    assert.equal(looks(), 1);
    await pass(0.1);
    assert.equal(looks(), 2);
    for (let i = 3; i <= 6; i++) {
      assert.deepEqual(
        lines.map(({ reason }) => reason),
        i === 6 ? ['not yet'] : [],
        `before check ${i}`,
      );
      await pass(2);
    }
    state.notReady = undefined;
    await pass(2);
    assert.deepEqual(seen.slice(-2), [false, true]);
    await pass(29);
    assert.equal(looks(), 7);
    await pass(1);
    assert.deepEqual(seen.slice(-3), [false, true, true]);
    state.error = new KubeError(404, 'NotFound', 'gone');
    await pass(30);
    for (let i = 0; i < 4; i++) await pass(2);
    assert.equal(seen.at(-1), false);
    assert.deepEqual(
      lines.map(({ level, reason }) => [level, typeof reason]),
      [
        [40, 'string'],
        [30, 'undefined'],
        [40, 'string'],
      ],
    );
    state.error = undefined;
    stopped.abort();
    await ended;
    await pass(100);
    assert.equal(seen.length, 13, 'none after the end');
  });
});

describe('one check of whether the API server calls the webhook', () => {
  const others = [
    { ...ACCOUNT, kind: 'User' },
    { ...ACCOUNT, name: 'other' },
  ];
  for (const other of others) {
    it(`does not mistake another subject for its account: ${JSON.stringify(other)}`, async () => {
      const { attempt, state } = stage([other]);
      assert.equal(await attempt(), undefined);
      assert.deepEqual(state.subjects, [other, ACCOUNT]);
    });
  }

  it('finds its account among others, and then requires nothing else', async () => {
    const { attempt, state } = stage([others[0], ACCOUNT], [undefined]);
    state.notReady = 'not yet';
    assert.equal(await attempt(), undefined);
    assert.deepEqual(state.subjects, [others[0], ACCOUNT]);
  });
});
