//! What the name of a model says about it. Answers of this wire do not name theirs.

/// Is the model Claude? Claude signs its reasoning, and refuses any that is not signed; others do neither. `None` where no
/// model is named, or its name does not tell: that of an inference profile.
pub(super) fn is_claude(model: &str) -> Option<bool> {
    if model.is_empty() || model.contains("inference-profile") {
        return None;
    }
    Some(["anthropic", "claude"].iter().any(|maker| model.contains(maker)))
}

/// Does the model take a document in the result of a tool? Recorded: Claude and Llama do, Nova refuses it.
pub(super) fn takes_documents_in_results(model: &str) -> Option<bool> {
    is_claude(model).map(|_| !model.contains("nova"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_maker() {
        let table = [
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", Some(true), Some(true)),
            ("claude-sonnet-4-5", Some(true), Some(true)),
            ("us.deepseek.r1-v1:0", Some(false), Some(true)),
            ("us.amazon.nova-2-lite-v1:0", Some(false), Some(false)),
            ("arn:aws:bedrock:us-east-1:1:application-inference-profile/x", None, None),
            ("", None, None),
        ];
        for (model, claude, documents) in table {
            assert_eq!((is_claude(model), takes_documents_in_results(model)), (claude, documents), "{model}");
        }
    }
}
