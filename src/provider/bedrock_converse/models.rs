//! What the name of a model tells. Answers of this wire do not name theirs.

/// Does the model take back reasoning that it did not sign? Claude signs its own, and refuses any other. `None` where no
/// model is named, or its name does not tell: that of an inference profile.
pub(super) fn takes_unsigned(model: &str) -> Option<bool> {
    if model.is_empty() || model.contains("inference-profile") {
        return None;
    }
    Some(!["anthropic", "claude"].iter().any(|maker| model.contains(maker)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_is_told_from_others() {
        let table = [
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", Some(false)),
            ("claude-sonnet-4-5", Some(false)),
            ("us.deepseek.r1-v1:0", Some(true)),
            ("openai.gpt-oss-120b-1:0", Some(true)),
            ("arn:aws:bedrock:us-east-1:1:application-inference-profile/x", None),
            ("", None),
        ];
        for (model, wanted) in table {
            assert_eq!(takes_unsigned(model), wanted, "{model}");
        }
    }
}
