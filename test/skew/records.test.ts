import assert from 'node:assert/strict';
import { formatPausedStart, isPausedAtStart, nextStep, parsePausedStart } from '../../model/launcher/paused-start.ts';
import { parsePreferences } from '../../model/placement/preferences.ts';
import { createNeedsReader } from '../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, podViewOf } from '../../scheduler-plugin/cluster/pod-view.ts';
import { createReservationRecord } from '../../scheduler-plugin/controllers/reservation-record.ts';
import { extenderOf, podOf, withUid } from '../scheduler-plugin/extender-fixture.ts';
import { recordingLogger } from '../support/logger.ts';

describe('reservations from an extender of another version', () => {
  const take = (text: string) => {
    const { state, clock } = extenderOf();
    const logged = recordingLogger();
    const record = createReservationRecord(state.reservations, 660, () => clock.now, logged.log);
    record.read(text);
    for (const uid of ['a', 'b']) {
      const pod = observedPod.parse({ ...withUid(podOf('4'), uid, { resourceVersion: '10' }), status: {} });
      record.restore(podViewOf(pod, createNeedsReader('all'))!);
    }
    const warning = logged.lines.find(({ msg }) =>
      /reading the previous leader’s reservations failed/.test(String(msg)),
    );
    return { held: ['a', 'b'].filter((uid) => state.reservations.of(uid) !== undefined), warning };
  };

  it('are all taken over if they have more fields', () => {
    const { held, warning } = take('[["a","10",60,["n1"],{"more":1}],["b","10",60,["n1"],7]]');
    assert.deepEqual([held, warning], [['a', 'b'], undefined]);
  });

  it('are taken over except one in another form, which is logged as lost', () => {
    const { held, warning } = take('[{"uid":"a"},["b","10",60,["n1"]]]');
    assert.deepEqual([held, warning?.['read'], warning?.['lost']], [['b'], 1, 1]);
  });

  it('in a completely different form are dropped with a log line', () => {
    const { held, warning } = take('{"format":2,"reservations":[]}');
    assert.deepEqual([held, warning?.['lost']], [[], 'all']);
    assert.match(String(warning?.['why']), /another version/);
  });
});

describe('annotations from a webhook of another version', () => {
  const NAMED = { 'plumbline.dev/tunnel': 'default' };

  it('with more fields are read without the unknown ones', () => {
    const text = JSON.stringify({
      format: 2,
      preferred: ['plumbline.dev/tunnel'],
      spansCells: true,
      interfaces: NAMED,
    });
    assert.deepEqual(parsePreferences(text), {
      preferred: ['plumbline.dev/tunnel'],
      spansCells: true,
      interfaces: NAMED,
    });
  });

  it('with one field in another form are read without that field', () => {
    const text = JSON.stringify({ preferred: { tunnel: 5 }, spansCells: true, interfaces: NAMED });
    assert.deepEqual(parsePreferences(text), { preferred: [], spansCells: true, interfaces: NAMED });
  });

  it('with a paused start in an unknown form resume or overwrite nothing, and the VM’s user gets the reason', () => {
    const record = parsePausedStart('awaiting 2 of 4');
    const paused = { reason: 'PausedByUser', since: '2026-11-01T10:00:00Z' };
    assert.equal(isPausedAtStart(record, paused), false);
    const step = nextStep({ record, phase: 'Running', paused }, { state: 'pinned', reason: '', message: '' });
    assert.ok(step.do === 'tell');
    assert.match(
      step.message,
      /"awaiting 2 of 4" is of another version of Plumbline: upgrade the extender, or unpause/,
    );
    assert.deepEqual(nextStep({ record, phase: 'Running', paused: undefined }, undefined), { do: 'nothing' });
    assert.equal(record && formatPausedStart(record), 'awaiting 2 of 4');
  });
});
