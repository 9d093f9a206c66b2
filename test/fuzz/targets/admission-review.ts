import { judge, type MutatedReview, mutatedReview } from '../../webhook/fuzz.ts';
import type { Target } from '../target.ts';

export const admissionReview: Target<MutatedReview> = {
  name: 'admission-review',
  about: 'the webhook answers with the uid of the review and a valid patch, or a 4xx with a message',
  inputs: mutatedReview,
  async judge(review) {
    return (await judge(review)) === 'reviewed' ? 'accepted' : 'refused';
  },
};
