import assert from 'node:assert/strict';
import { formatPausedStart, isPausedAtStart, nextStep, parsePausedStart } from '../../model/launcher/paused-start.ts';
import { parsePreferences } from '../../model/placement/preferences.ts';
import { createNeedsReader } from '../../scheduler-plugin/cluster/pod-needs.ts';
import { observedPod, podViewOf } from '../../scheduler-plugin/cluster/pod-view.ts';
import { createReservationRecord } from '../../scheduler-plugin/controllers/reservation-record.ts';
import { extenderOf, podOf, withUid } from '../scheduler-plugin/extender-fixture.ts';
import { recordingLogger } from '../support/logger.ts';

describe('reservations that an extender of another version hands on', () => {
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

  it('with more in each: all are taken over', () => {
    const { held, warning } = take('[["a","10",60,["n1"],{"more":1}],["b","10",60,["n1"],7]]');
    assert.deepEqual([held, warning], [['a', 'b'], undefined]);
  });

  it('of which one is written differently: takes over the others, and logs that one is lost', () => {
    const { held, warning } = take('[{"uid":"a"},["b","10",60,["n1"]]]');
    assert.deepEqual([held, warning?.['read'], warning?.['lost']], [['b'], 1, 1]);
  });

  it('in another form altogether: the extender starts without them, and the log says so', () => {
    const { held, warning } = take('{"format":2,"reservations":[]}');
    assert.deepEqual([held, warning?.['lost']], [[], 'all']);
    assert.match(String(warning?.['why']), /another version/);
  });
});

describe('what a webhook of another version writes for extender and agent', () => {
  const NAMED = { 'plumbline.dev/tunnel': 'default' };

  it('more fields are ignored, and those that are known are read', () => {
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

  it('a field that is written differently expresses nothing, and takes no other field with it', () => {
    const text = JSON.stringify({ preferred: { tunnel: 5 }, spansCells: true, interfaces: NAMED });
    assert.deepEqual(parsePreferences(text), { preferred: [], spansCells: true, interfaces: NAMED });
  });

  it('the record of a paused start in an unknown form: nothing is resumed or overwritten, and the VM’s user hears why', () => {
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
