import assert from 'node:assert/strict';
import { formatPausedStart, isPausedAtStart, nextStep, parsePausedStart } from '../../model/launcher/paused-start.ts';
import { parsePreferences } from '../../model/placement/preferences.ts';

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
      guestThreads: 1,
      interfaces: NAMED,
    });
  });

  it('with one field in another form are read without that field', () => {
    const text = JSON.stringify({ preferred: { tunnel: 5 }, spansCells: true, interfaces: NAMED });
    assert.deepEqual(parsePreferences(text), { preferred: [], spansCells: true, guestThreads: 1, interfaces: NAMED });
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
