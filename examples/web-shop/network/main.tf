# A placeholder for a network. It uses only Terraform's built-in resources, so that it runs anywhere.
terraform {
  required_version = ">= 1.4"
}

variable "cidr" {
  type        = string
  description = "Address range of the network"
}

resource "terraform_data" "network" {
  input = { cidr = var.cidr }
}

output "id" {
  description = "Id of the network"
  value       = terraform_data.network.id
}

output "cidr" {
  description = "Address range of the network"
  value       = terraform_data.network.output.cidr
}
