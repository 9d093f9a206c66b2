import type { Diagnosis, RemedyEntry } from '../data/wire.ts';
import { dataOf, type ServerAnswer, useAnswer } from '../state/ask.ts';
import { Paragraphs } from './detail.tsx';

/** The answer of `plumbline explain`, which reads all objects about a VM or pod and asks the extender about every node. */
export function useDiagnosis(kind: 'vm' | 'pod', name: string | undefined, cause?: string): ServerAnswer<Diagnosis> {
  const url = name === undefined ? undefined : `/diagnosis?${kind}=${encodeURIComponent(name)}`;
  return useAnswer<Diagnosis>(url, cause);
}

export function Remedies({ entries }: { readonly entries: readonly RemedyEntry[] }) {
  if (entries.length === 0) return null;
  return (
    <section class="remedies" aria-labelledby="remedies">
      <h3 id="remedies">What would help</h3>
      <ul>
        {entries.map(([text, ...commands]) => (
          <li key={text}>
            {text}
            {commands.map((command) => (
              <code key={command} class="command">
                {command}
              </code>
            ))}
          </li>
        ))}
      </ul>
    </section>
  );
}

interface DiagnosisDetailsProps {
  readonly answer: ServerAnswer<Diagnosis>;
  /** Until there is an answer. */
  readonly remedies: readonly RemedyEntry[];
}

export function DiagnosisDetails({ answer, remedies }: DiagnosisDetailsProps) {
  const diagnosis = dataOf(answer);
  const { causes = [], verdict, notes = [] } = diagnosis ?? {};
  return (
    <>
      <Paragraphs texts={causes} look={verdict === 'broken' ? 'problem' : 'problem is-mild'} />
      <Remedies entries={diagnosis?.remedies ?? remedies} />
      <Paragraphs texts={notes} look="about" />
      {answer !== undefined && 'failed' in answer && <p class="about">Only some causes are checked. {answer.failed}</p>}
    </>
  );
}
