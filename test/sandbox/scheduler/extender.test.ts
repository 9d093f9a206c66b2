import assert from 'node:assert/strict';
import {
  parseSchedulerConfiguration,
  readFilterReply,
  readPrioritizeReply,
} from '../../../sandbox/scheduler/extender.ts';

describe('scheduler: the protocol of extenders', () => {
  const offered = new Set(['a', 'b']);
  const read = (reply: unknown) => readFilterReply('e', reply, offered);

  const wrong: [string, unknown, RegExp][] = [
    ['an Error', { Error: 'not synced' }, /not synced/],
    ['a name that was not sent', { NodeNames: ['a', 'z'] }, /a filtered node "z" which is not found/],
  ];
  for (const [what, reply, message] of wrong) it(`rejects ${what}`, () => assert.throws(() => read(reply), message));

  it('rejects the whole reply for a fraction', () =>
    assert.throws(() => readPrioritizeReply('e', [{ Host: 'a', Score: 7.5 }]), /prioritize reply/));
});

it('the configuration of a scheduler refuses an unknown field of an extender', () => {
  const extenders = [{ urlPrefix: 'http://127.0.0.1:1/x', nodeCacheCapable: true, nodeCacheable: true }];
  const configuration = { apiVersion: 'kubescheduler.config.k8s.io/v1', kind: 'KubeSchedulerConfiguration', extenders };
  assert.throws(() => parseSchedulerConfiguration(configuration), /nodeCacheable/);
});
